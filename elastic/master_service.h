#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "elastic/master_host.h"

namespace sluice::elastic {

// The master's gRPC door: workers and parameter servers of one job come in here. It only
// translates; what happens is decided by the host.
class MasterServer {
 public:
  // Listens on a free port of `host` at once.
  static Result<std::unique_ptr<MasterServer>> Start(const std::string& host,
                                                     const std::string& token, uint32_t servers,
                                                     MasterHost& master);
  virtual ~MasterServer() = default;  // ends calls that still wait
  virtual std::string address() const = 0;
  // Addresses of the parameter servers by index; empty until all have registered.
  virtual std::vector<std::string> ParameterServers() const = 0;
};

}  // namespace sluice::elastic
