#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "elastic/parameter_shard.h"
#include "elastic/partition_map.h"

namespace sluice::elastic {

// A parameter server's gRPC door. It serves nothing until the master installs a map.
class ParameterServer {
 public:
  struct Options {
    std::string host;  // listens on a free port of it, at once
    std::string token;
    ServerId self = 0;
    std::unique_ptr<models::NetworkWeights> base;  // to continue from
  };
  // `shard` must outlive it.
  static Result<std::unique_ptr<ParameterServer>> Start(Options options, ParameterShard& shard);
  virtual ~ParameterServer() = default;
  virtual std::string address() const = 0;
};

}  // namespace sluice::elastic
