#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "elastic/fleet/fleet.h"
#include "executor/local/job_cluster.h"

namespace sluice::executor {

// A JobCluster's gRPC server: accepts only the job's current master. Thread-safe.
class JobClusterServer {
 public:
  // `address`: as elastic::Acceptor::Listen. `cluster` is called by the server's threads.
  static Result<std::unique_ptr<JobClusterServer>> Start(const std::string& address,
                                                         const std::string& token,
                                                         JobCluster& cluster);
  virtual ~JobClusterServer() = default;  // waits for the calls that still run
  // The next master begins. Events that were not fetched yet are dropped: the new master is told
  // which processes live.
  virtual void BeginTerm(elastic::Term term) = 0;
  // Sends the event to the current term's master; events stay in order. Returns at once.
  virtual void Report(const elastic::FleetEvent& event) = 0;
};

}  // namespace sluice::executor
