#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "catalog/job_store.h"
#include "tests/chaos/gateway_process.h"
#include "tests/chaos/schedule.h"

namespace sluice::chaos {

// What really happened to a job.
struct Blows {
  std::map<std::pair<Target, Blow>, int> sent;
  std::vector<std::string> log;  // seconds since the job's first process, blow, process number
};

// Carries a schedule out, from a thread of its own, on the processes of the one job that runs.
//
// A job promises to outlive the loss of one server while its parameters have two copies; a blow at
// a server that comes earlier than that waits until they have them again. So does one at a target
// of which nobody lives at the moment.
class Disturber {
 public:
  // `seconds`: how long the job takes undisturbed.
  Disturber(const GatewayProcess& gateway, catalog::JobStore& jobs, const Schedule& schedule,
            double seconds);
  // Lets everybody continue who is paused.
  ~Disturber();
  // Ends: nothing is sent any more. Blows that were not due yet are not in the answer.
  Blows Finish();

 private:
  struct Paused {
    TimePoint until{};
    std::shared_ptr<const Victim> victim;
    Target target = Target::kWorker;
  };
  void Run(const std::stop_token& stop);
  // False: `stop` was requested.
  bool SleepUntil(TimePoint when, const std::stop_token& stop);
  bool Strike(const Fault& fault);
  void ContinueDue(TimePoint now);
  bool ServersAreWhole();

  const GatewayProcess& gateway_;
  catalog::JobStore& jobs_;
  const Schedule schedule_;
  const double seconds_;
  const SteadyClock clock_;
  std::mutex mutex_;
  std::condition_variable_any wake_;

  // The thread's, and Finish's after it.
  Blows blows_;
  TimePoint begin_{};
  int64_t job_ = 0;
  std::vector<Paused> paused_;
  std::shared_ptr<const Victim> struck_server_;
  int64_t struck_server_micros_ = 0;     // wall clock; 0: none
  TimePoint struck_server_continues_{};  // that was paused
  std::jthread thread_;
};

}  // namespace sluice::chaos
