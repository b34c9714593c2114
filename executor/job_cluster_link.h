#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "elastic/fleet/fleet.h"
#include "elastic/job/fleet_job.h"
#include "executor/job_cluster.h"

namespace sluice::executor {

// The gateway that a job's master works for, as the master sees it: a fleet, and somebody who wants
// to know how the job goes. The processes are the gateway's, so they outlive this object and this
// process; what is left of a job when it is over, the gateway ends. When the gateway goes, its
// processes go with it: each has then exited. Thread-safe.
class JobClusterLink : public elastic::Fleet {
 public:
  // `address` of the JobClusterServer; token, term and the processes that an earlier master of the
  // job has started are the endpoint's. Begins to hear events at once, and keeps them for Watch. A
  // call that is not answered within `patience` is Unavailable.
  static std::unique_ptr<JobClusterLink> Connect(
      const std::string& address, const elastic::JobEndpoint& endpoint,
      std::chrono::milliseconds patience = std::chrono::seconds(20));
  // For people only: return at once. Of what cannot be sent at once the newest is kept.
  virtual void Report(const elastic::Progress& progress) = 0;
  virtual void Notice(const std::string& text) = 0;
  // OK: the gateway knows the end, and closes the job. Unavailable: there is no gateway any more.
  // Aborted: it has a later master. Waits for a gateway that is there and does not answer.
  virtual Status Finish(const JobEnd& end) = 0;
};

}  // namespace sluice::executor
