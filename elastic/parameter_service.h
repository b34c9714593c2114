#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "elastic/parameter_shard.h"

namespace sluice::elastic {

// A parameter server's gRPC door.
class ParameterServer {
 public:
  // Listens on a free port of `host` at once. `shard` must outlive it.
  static Result<std::unique_ptr<ParameterServer>> Start(const std::string& host,
                                                        const std::string& token,
                                                        const models::Network& network,
                                                        const Placement& placement,
                                                        ParameterShard& shard);
  virtual ~ParameterServer() = default;
  virtual std::string address() const = 0;
};

}  // namespace sluice::elastic
