#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/status.h"

namespace sluice::server {

// What one role may take of a gateway, at all its doors together; 0: no limit. The gateway's own
// login and superusers have none. The numbers are those of a gateway that is not told any.
struct RoleLimits {
  // Clients at the PostgreSQL door, and scripts and calls that run over gRPC. nullopt: half
  // of the server's max_connections.
  std::optional<int64_t> sessions = {};
  // Trainings, predictions and evaluations into a table that run at the same time. nullopt: a tenth
  // of max_connections, and no more than three quarters of max_statements.
  std::optional<int64_t> jobs = {};
  // A minute, that the gateway runs.
  int64_t statements = 60'000;
  // Of one model; and MiB of all models of one role.
  int64_t versions = 10'000;
  int64_t stored_mebibytes = 65'536;
};

// "sessions=40,jobs=4": the others stay as above.
Result<RoleLimits> ReadRoleLimits(std::string_view text);

}  // namespace sluice::server
