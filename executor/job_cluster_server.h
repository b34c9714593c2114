#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "elastic/fleet/fleet.h"
#include "executor/job_cluster.h"

namespace sluice::executor {

// A JobCluster's gRPC server: lets in the job's present master, and nobody else. Thread-safe.
class JobClusterServer {
 public:
  // `address`: as elastic::Acceptor::Listen. `cluster` is called by the server's threads.
  static Result<std::unique_ptr<JobClusterServer>> Start(const std::string& address,
                                                         const std::string& token,
                                                         JobCluster& cluster);
  virtual ~JobClusterServer() = default;  // waits for the calls that still run
  // The next master begins. Events that nobody has heard yet are dropped: it is told what lives.
  virtual void BeginTerm(elastic::Term term) = 0;
  // For the master of the present term, in this order. Returns at once.
  virtual void Tell(const elastic::FleetEvent& event) = 0;
};

}  // namespace sluice::executor
