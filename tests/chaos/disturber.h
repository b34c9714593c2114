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

// What really happened to a job.
struct Blows {
  int64_t began_micros = 0;  // wall clock: the job's first process was there
  std::map<std::pair<Target, Blow>, int> sent;
  std::vector<std::string> log;  // seconds since the job's first process, blow, process number
  // All copies of some parameters that servers hold may have been gone at once.
  bool both_copies = false;
  bool files = false;  // of checkpoints are not what they were
};

// Carries a schedule out, from a thread of its own, on the processes of the one job that runs.
//
// A job promises to outlive the loss of one server while its parameters have two copies; a blow at
// a server that comes earlier than that waits until they have them again, unless the schedule wants
// it regardless. So does one at a target of which nobody lives at the moment.
class Disturber {
 public:
  struct Scene {
    const GatewayProcess& gateway;
    catalog::DataSource& source;
    catalog::Catalog& catalog;
    std::filesystem::path checkpoints;  // the job's folder of them, if it writes any
    double seconds = 0;                 // how long the job takes undisturbed
    int epochs = 1;
  };
  Disturber(Scene scene, Schedule schedule);
  // Lets everybody continue who is paused.
  ~Disturber();
  // Ends: nothing is sent any more. Blows that were not due yet are not in the answer.
  Blows Finish();

 private:
  struct Due {
    TimePoint when = TimePoint::max();  // its moment has not come
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
  // Sets the time of the faults whose moment has come.
  void LookForMoments();
  bool HasCome(const Fault& fault, uint32_t evaluations, bool ending) const;
  // False: not now.
  bool Strike(const Fault& fault);
  bool StrikeFiles(const Fault& fault);
  bool StrikeOne(const Fault& fault, const std::shared_ptr<const Victim>& victim);
  void StrikeServer(const Fault& fault, const std::shared_ptr<const Victim>& victim, bool whole);
  void Record(const Fault& fault, const std::string& at_whom);
  void ContinueDue(TimePoint now);
  bool ServersAreWhole();

  const Scene scene_;
  const Schedule schedule_;
  const SteadyClock clock_;
  std::mutex mutex_;
  std::condition_variable_any wake_;

  // The thread's, and Finish's after it.
  Blows blows_;
  TimePoint begin_{};
  int64_t job_ = 0;
  std::vector<Due> due_;
  std::vector<Paused> paused_;
  CheckpointFiles files_;
  std::shared_ptr<const Victim> struck_server_;
  int64_t struck_server_micros_ = 0;     // wall clock; 0: none
  TimePoint struck_server_continues_{};  // that was paused
  std::jthread thread_;
};

}  // namespace sluice::chaos
