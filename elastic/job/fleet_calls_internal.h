#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "base/work_queue.h"
#include "elastic/fleet/fleet.h"

namespace sluice::plan {
class Strategy;
}

namespace sluice::elastic {

class JobProcesses;

// What a job asks of its fleet, which may take its time: one thread calls it for workers, another
// one for parameter servers, each in the order in which it was asked. Thread-safe.
class FleetCalls {
 public:
  // `on_error` hears of what cannot go on, on any thread.
  FleetCalls(Fleet& fleet, std::shared_ptr<JobProcesses> processes, const plan::Strategy& strategy,
             const std::function<void(const Status&)>& on_error);

  // Asks for a process with the job's resources, of memory so many times what the statement says.
  // `launched` is told how it went; what it answers goes to `on_error`, when it is an error.
  Status Launch(ProcessSpec spec, double memory_factor,
                std::function<Status(const Status&)> launched);
  // One that is gone already need not be stopped.
  Status Stop(Role role, const std::string& name, double grace_seconds);
  // When it returns the fleet is not called any more; what waited is dropped.
  void End();

 private:
  WorkQueue& Of(Role role) { return role == Role::kWorker ? workers_ : servers_; }

  Fleet& fleet_;
  const std::shared_ptr<JobProcesses> processes_;
  const plan::Strategy& strategy_;
  WorkQueue workers_, servers_;
};

}  // namespace sluice::elastic
