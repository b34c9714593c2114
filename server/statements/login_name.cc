#include "server/statements/login_name.h"

#include <fmt/core.h>

#include <string>

namespace sluice::server {
namespace {

Status CheckLength(std::string_view what, std::string_view name) {
  constexpr size_t kMostBytes = 63;  // NAMEDATALEN - 1
  return name.size() <= kMostBytes
             ? OkStatus()
             : Status(Code::kPermissionDenied,
                      fmt::format("the name of the {} is longer than {} bytes", what, kMostBytes))
                   .SqlState("28000")
                   .Hint(
                       fmt::format("PostgreSQL would take it for {}", name.substr(0, kMostBytes)));
}

}  // namespace

Status CheckLoginNames(std::string_view role, std::string_view database) {
  RETURN_IF_ERROR(CheckLength("role", role));
  return CheckLength("database", database);
}

}  // namespace sluice::server
