#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "elastic/ids.h"

namespace sluice::elastic {

enum class Role { kMaster, kWorker, kParameterServer };
std::string_view RoleName(
    Role role);  // "master", "worker", "ps": also the subcommands of the binary

// Names of a job's processes, each unique in a fleet. Workers are numbered from 1 in the order in
// which a run of the job starts them.
std::string WorkerName(std::string_view job, uint64_t number);
std::string ServerName(std::string_view job, ServerId server);

struct Resources {
  double cpu = 1;
  int64_t memory_bytes = 0;  // as asked for, times `memory_factor`; 0: the statement does not say
  // More than 1 after workers of the job ran out of memory; of what a fleet gives by itself, too.
  double memory_factor = 1;
};

// One process to start. `config` (a serialised elastic.ProcessConfig: plan, addresses, incarnation)
// and `secret` are passed through an inherited descriptor or a mounted Secret, never through argv.
struct ProcessSpec {
  Role role = Role::kWorker;
  std::string name;  // "job7-worker-3": unique in the fleet
  std::string config;
  std::string secret;
  Resources resources;
  int priority = 0;
  // What a later master of the job needs to know about it: a worker's incarnation, a server's
  // index.
  Incarnation incarnation = kNoIncarnation;
  ServerId server_index = ServerId::First();
};

enum class ExitClass {
  kOk,             // 0
  kPreempted,      // 137, 143, stopped by the fleet
  kOutOfMemory,    // 247, or reported by the system
  kApplication,    // 1, 2, 134, 139
  kConfiguration,  // 126, 127, cannot be started
  kHardware,
  kKilledForMemory,  // by the kernel: its control group, or the machine, had no more memory, which
                     // the fleet cannot change
};
// The exit code of our own processes when they get no more memory.
inline constexpr int kOutOfMemoryExit = 247;
ExitClass ClassifyExit(int exit_code, bool out_of_memory);

struct FleetEvent {
  // kGranted: from now on the job has this many workers, neither more nor fewer; if that is fewer
  // than now, those of `give_up` leave first. kLeaving: the process is being ended from outside,
  // with a delay, so its work is handed on now; kExited follows. kWaiting: it is not placed yet, or
  // cannot start yet; `message` gives the reason. Any number of these come before kStarted.
  enum class Kind { kStarted, kExited, kGranted, kLeaving, kWaiting };
  Kind kind = Kind::kStarted;
  std::string name;
  Role role = Role::kWorker;
  int exit_code = 0;  // as mapped by Kubernetes: SIGKILL 137, SIGTERM 143
  ExitClass exit_class = ExitClass::kOk;
  std::string message;   // last lines of the process's standard error; for kWaiting: the reason
  uint32_t workers = 0;  // for kGranted
  std::vector<std::string> give_up = {};  // for kGranted: names
  bool placed = false;                    // for kWaiting: it is placed, and cannot start there yet
};

// Launches, stops and watches the processes of a job: local processes or pods. Thread-safe.
class Fleet {
 public:
  using Watcher = std::function<void(const FleetEvent&)>;  // called on a thread of the fleet's own
  // Local processes end with their fleet; pods continue without it.
  virtual ~Fleet() = default;
  virtual Status Launch(const ProcessSpec& spec) = 0;
  // SIGTERM (or pod deletion), SIGKILL after the grace. Returns at once; the exit is an event.
  virtual Status Stop(const std::string& name, double grace_seconds) = 0;
  virtual void Watch(Watcher watcher) = 0;  // once, before the first Launch
};

}  // namespace sluice::elastic
