#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::chaos {

enum class Mode { kAsynchronous, kBoundedStaleness, kSynchronous, kAllReduce };
// kIds: every row has its own id, whose learnt weight tells how often the row was applied.
enum class Table { kCensus, kClicks, kIds };

inline constexpr std::array kModes = {Mode::kAsynchronous, Mode::kBoundedStaleness,
                                      Mode::kSynchronous, Mode::kAllReduce};
inline constexpr std::array kTables = {Table::kCensus, Table::kClicks, Table::kIds};

// The job to train.
struct Job {
  Mode mode = Mode::kAsynchronous;
  Table table = Table::kCensus;
  int patience = 0;  // train.early_stopping_rounds
  bool checkpoints = false;
  bool postgres = false;   // else SQLite
  bool one_epoch = false;  // a row's weight then tells exactly how often it was applied
  auto operator<=>(const Job&) const = default;
};
// Whether the weights depend only on the statement, whichever processes are killed.
bool SameBits(Mode mode);

enum class FaultKind {
  kKill,        // SIGKILL
  kPause,       // SIGSTOP, and SIGCONT later
  kDisconnect,  // all of a process's connections to PostgreSQL are terminated
  kExchange,    // a file of the newest checkpoint with one of an older
  kDamage,      // a byte of a file of the newest checkpoint
};
enum class Target { kWorker, kServer, kMaster, kCheckpoint };

// The event that a fault waits for.
enum class Moment {
  kTime,
  kEvaluation,  // the nth epoch's evaluation has ended
  kDraft,       // the nth checkpoint is being written
  kCheckpoint,  // this many checkpoints have been written
  kCommit,      // the last evaluation has ended: the model is about to be stored
};

// Whether a job continues under another master when its own is killed.
inline constexpr bool kMastersAreSucceeded = true;

struct Fault {
  Moment moment = Moment::kTime;
  double at = 0;     // kTime: in undisturbed durations, from the first process's start on
  uint32_t nth = 1;  // of the other moments
  double after = 0;  // seconds after the moment
  FaultKind kind = FaultKind::kKill;
  Target target = Target::kWorker;
  uint32_t pick = 0;  // which of the living ones, by age
  bool all = false;   // all of them at once
  // Happens even if parameters may have only one copy at the moment.
  bool regardless = false;
  double pause_seconds = 0;  // kPause
};

// A schedule's typical faults; there are also faults at any time.
enum class Style {
  kScattered,    // nothing: faults at any time
  kStorm,        // masters are killed one after the other, 0.25 to 0.9 s apart
  kBurst,        // several processes within milliseconds, or all of a role
  kEpochEnds,    // right after an epoch's evaluation
  kDrafts,       // while a checkpoint is written
  kCommit,       // while the model is stored
  kConnections,  // to PostgreSQL, terminated
  kLostCopies,   // both copies of parameters at once, all replicas, or all processes
  kFiles,        // of checkpoints, exchanged or damaged; then the job needs one
};
// Storms and bursts.
bool IsStorm(Style style);

std::string_view NameOf(Mode mode);
std::string_view NameOf(Table table);
std::string_view NameOf(FaultKind kind);
std::string_view NameOf(Target target);
std::string_view NameOf(Style style);

// The faults of one job: depends only on the seed (and on whether masters are killed).
struct Schedule {
  uint64_t seed = 0;
  Job job;
  Style style = Style::kScattered;
  std::vector<Fault> faults;
};

// Twelve consecutive seeds train every table in every mode.
Schedule DrawSchedule(uint64_t seed, bool kill_masters);
std::string Describe(const Fault& fault);
std::string Describe(const Schedule& schedule);

}  // namespace sluice::chaos
