#pragma once

#include <condition_variable>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "catalog/job_store.h"
#include "tests/chaos/checkpoint_files.h"
#include "tests/chaos/gateway_process.h"
#include "tests/chaos/schedule.h"

namespace sluice::chaos {

// What actually happened to a job.
struct InjectedFaults {
  int64_t began_micros = 0;  // wall clock: when the job's first process existed
  std::map<std::pair<Target, FaultKind>, int> sent;
  std::vector<std::string> log;  // seconds since the job's first process, kind, process number
  // Possibly all copies of some parameters on servers were lost at once.
  bool both_copies = false;
  bool files = false;  // checkpoint files were changed
};

// Carries out a schedule, on a thread of its own, on the processes of the one running job.
//
// A job must survive the loss of one server while its parameters have two copies; a fault at a
// server waits until they do, unless the schedule says "regardless". A fault also waits while no
// process of its target role is alive.
class FaultInjector {
 public:
  struct Scene {
    const GatewayProcess& gateway;
    catalog::DataSource& source;
    catalog::Catalog& catalog;
    std::filesystem::path checkpoints;  // the job's folder of them, if it writes any
    double seconds = 0;                 // duration of the undisturbed job
    int epochs = 1;
  };
  FaultInjector(Scene scene, Schedule schedule);
  // Resumes all paused processes.
  ~FaultInjector();
  // Stops sending faults. Those that were not due yet are not in the result.
  InjectedFaults Finish();

 private:
  struct Due {
    TimePoint when = TimePoint::max();  // not known yet
    Fault fault;
  };
  struct Paused {
    TimePoint until{};
    std::shared_ptr<const Victim> victim;
  };
  void Run(const std::stop_token& stop);
  // False: `stop` was requested.
  bool SleepUntil(TimePoint when, const std::stop_token& stop);
  TimePoint NextLook() const;
  // Sets the time of faults whose moment has come.
  void LookForMoments();
  bool HasCome(const Fault& fault, uint32_t evaluations, bool ending) const;
  // False: not possible now.
  bool Inject(const Fault& fault);
  bool InjectIntoFiles(const Fault& fault);
  bool InjectInto(const Fault& fault, const std::shared_ptr<const Victim>& victim);
  void InjectIntoServer(const Fault& fault, const std::shared_ptr<const Victim>& victim,
                        bool whole);
  void Record(const Fault& fault, const std::string& at_whom);
  void ContinueDue(TimePoint now);
  bool ServersAreWhole();

  const Scene scene_;
  const Schedule schedule_;
  const SteadyClock clock_;
  std::mutex mutex_;
  std::condition_variable_any wake_;

  // Used by the thread, and by Finish after it.
  InjectedFaults injected_;
  TimePoint begin_{};
  int64_t job_ = 0;
  std::vector<Due> due_;
  std::vector<Paused> paused_;
  CheckpointFiles files_;
  std::shared_ptr<const Victim> hit_server_;
  int64_t hit_server_micros_ = 0;     // wall clock; 0: none yet
  TimePoint hit_server_continues_{};  // if it was paused
  std::jthread thread_;
};

}  // namespace sluice::chaos
