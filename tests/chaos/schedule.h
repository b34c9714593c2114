#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::chaos {

enum class Mode { kAsynchronous, kBoundedStaleness, kSynchronous, kAllReduce };
enum class Table { kCensus, kClicks };
enum class Blow { kKill, kPause };  // SIGKILL; SIGSTOP, and SIGCONT later
enum class Target { kWorker, kServer, kMaster };

inline constexpr std::array kModes = {Mode::kAsynchronous, Mode::kBoundedStaleness,
                                      Mode::kSynchronous, Mode::kAllReduce};
inline constexpr std::array kTargets = {Target::kWorker, Target::kServer, Target::kMaster};
inline constexpr std::array kBlows = {Blow::kKill, Blow::kPause};

// Whether a job goes on under another master when its own is killed.
inline constexpr bool kMastersAreSucceeded = true;

std::string_view NameOf(Mode mode);
std::string_view NameOf(Table table);
std::string_view NameOf(Blow blow);
std::string_view NameOf(Target target);

struct Fault {
  double at = 0;  // in undisturbed durations of the job, since its first process was there
  Blow blow = Blow::kKill;
  Target target = Target::kWorker;
  uint32_t pick = 0;         // which of those that live then, by age
  double pause_seconds = 0;  // kPause
};

// What happens to one job: a function of the seed (and of whether masters are killed) alone.
struct Schedule {
  uint64_t seed = 0;
  Mode mode = Mode::kAsynchronous;
  Table table = Table::kCensus;
  std::vector<Fault> faults;  // by time
};

// Eight consecutive seeds train every table in every mode.
Schedule DrawSchedule(uint64_t seed, bool kill_masters);
std::string Describe(const Fault& fault);
std::string Describe(const Schedule& schedule);

}  // namespace sluice::chaos
