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

// A job's calls to its fleet, which may take long: one thread calls it for workers, another for
// parameter servers, each in the order of the requests. Thread-safe.
class FleetCalls {
 public:
  // `on_error` is called with an error that ends the job, on any thread.
  FleetCalls(Fleet& fleet, std::shared_ptr<JobProcesses> processes, const plan::Strategy& strategy,
             const std::function<void(const Status&)>& on_error);

  // Requests a process with the job's resources, with the statement's memory times `memory_factor`.
  // `launched` gets the result; if it returns an error, that goes to `on_error`.
  Status Launch(ProcessSpec spec, double memory_factor,
                std::function<Status(const Status&)> launched);
  // Stopping a process that has already ended is no error.
  Status StopWorker(const std::string& name, double grace_seconds);
  Status StopServer(ServerId server, double grace_seconds);
  // After it returns the fleet is no longer called; waiting calls are dropped.
  void End();

 private:
  void Stop(const std::string& name, double grace_seconds);

  Fleet& fleet_;
  const std::shared_ptr<JobProcesses> processes_;
  const plan::Strategy& strategy_;
  WorkQueue workers_, servers_;
};

}  // namespace sluice::elastic
