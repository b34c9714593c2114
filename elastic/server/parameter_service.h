#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/status.h"
#include "elastic/parameters/parameter_shard.h"
#include "elastic/parameters/partition_map.h"
#include "elastic/rpc/job_endpoint.h"

namespace sluice::elastic {

// A parameter server's gRPC server. It serves nothing until the master installs a map.
class ParameterServer {
 public:
  struct Options {
    // Listens on a free port of it, immediately; on the loopback and without encryption, at a free
    // Unix address instead.
    std::string host;
    JobKey key;
    ServerId self;
    std::unique_ptr<models::NetworkWeights> base;  // to continue from
  };
  // `shard` must outlive it.
  static Result<std::unique_ptr<ParameterServer>> Start(Options options, ParameterShard& shard);
  virtual ~ParameterServer() = default;
  virtual std::string address() const = 0;
  // The master has answered a request made at `asked`. A server without such an answer for
  // kServerSilenceSeconds may have been given up while it slept: it refuses requests until the
  // master confirms that it has not. One that was never answered has no master.
  virtual void AnsweredByMaster(std::chrono::steady_clock::time_point asked) = 0;
  // An error: it cannot follow the servers whose partitions it should copy, and must be replaced.
  virtual Status health() const = 0;
};

}  // namespace sluice::elastic
