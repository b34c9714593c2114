#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "elastic/fleet/fleet.h"
#include "elastic/job/fleet_job.h"
#include "executor/local/job_cluster.h"

namespace sluice::executor {

// A job's master's view of its gateway: a fleet, and a receiver of the job's progress. The
// processes belong to the gateway, so they outlive this object and this process; the gateway ends
// what is left of a job when it is over. When the gateway dies, its processes die with it: each is
// then reported as exited. Thread-safe.
class JobClusterLink : public elastic::Fleet {
 public:
  // `address` of the JobClusterServer; `endpoint` has the token, the term, and the processes that
  // an earlier master of the job has started. Starts to receive events at once, and keeps them for
  // Watch. A call that is not answered within `patience` is Unavailable.
  static std::unique_ptr<JobClusterLink> Connect(
      const std::string& address, const elastic::JobEndpoint& endpoint,
      std::chrono::milliseconds patience = std::chrono::seconds(20));
  // For display only: returns at once. If sending is slow, only the newest report is kept.
  virtual void Report(const elastic::Progress& progress) = 0;
  virtual void Notice(const std::string& text) = 0;
  // Whether the gateway is there, and this is its job's newest master; one that does not answer in
  // a moment counts as there.
  virtual bool IsWanted() = 0;
  // OK: the gateway knows the end, and closes the job. Unavailable: the gateway is gone. Aborted:
  // the job has a later master. While the gateway exists but does not answer, it waits.
  virtual Status Finish(const Result<std::string>& answer) = 0;
};

}  // namespace sluice::executor
