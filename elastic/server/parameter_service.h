#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/status.h"
#include "elastic/parameters/parameter_shard.h"
#include "elastic/parameters/partition_map.h"
#include "elastic/rpc/job_endpoint.h"

namespace sluice::elastic {

// A parameter server's gRPC door. It serves nothing until the master installs a map.
class ParameterServer {
 public:
  struct Options {
    std::string host;  // listens on a free port of it, at once
    JobKey key;
    ServerId self = 0;
    std::unique_ptr<models::NetworkWeights> base;  // to continue from
  };
  // `shard` must outlive it.
  static Result<std::unique_ptr<ParameterServer>> Start(Options options, ParameterShard& shard);
  virtual ~ParameterServer() = default;
  virtual std::string address() const = 0;
  // The master has answered what it was asked at `asked`. A server that has had no such answer for
  // kServerSilenceSeconds may have been given up while it slept: it refuses, until the master says
  // that it has not. One that was never answered has no master.
  virtual void AnsweredByMaster(std::chrono::steady_clock::time_point asked) = 0;
  // An error: it cannot follow the servers whose partitions it is to copy, and must be replaced.
  virtual Status health() const = 0;
};

}  // namespace sluice::elastic
