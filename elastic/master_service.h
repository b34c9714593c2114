#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "elastic/master_host.h"
#include "elastic/seat.h"

namespace sluice::elastic {

// The master's gRPC door: workers and parameter servers of one job come in here. It only
// translates; what happens is decided by the host.
class MasterServer {
 public:
  // Listens where the seat says, at once.
  static Result<std::unique_ptr<MasterServer>> Start(const MasterSeat& seat, uint32_t servers,
                                                     MasterHost& master);
  virtual ~MasterServer() = default;  // ends calls that still wait
  virtual std::string address() const = 0;
  // Addresses of the parameter servers by index; empty until all have registered.
  virtual std::vector<std::string> ParameterServers() const = 0;
};

}  // namespace sluice::elastic
