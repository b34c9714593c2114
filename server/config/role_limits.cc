#include "server/config/role_limits.h"

#include <fmt/core.h>

#include <charconv>
#include <string>
#include <vector>

#include "base/letter_case.h"

namespace sluice::server {
namespace {

constexpr int64_t kMost = 1'000'000'000;

Result<int64_t> ReadLimit(std::string_view name, std::string_view value) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || number < 0 || number > kMost) {
    return InvalidArgument(
        fmt::format("role_limits: {} must be an integer from 0 (no limit) to {},"
                    " not '{}'",
                    name, kMost, value));
  }
  return number;
}

}  // namespace

Result<RoleLimits> ReadRoleLimits(std::string_view text) {
  static const std::vector<std::string> names = {"sessions", "jobs", "statements", "versions",
                                                 "stored"};
  RoleLimits limits;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(item.size() == text.size() ? item.size() : item.size() + 1);
    const size_t equals = item.find('=');
    const std::string name(item.substr(0, equals));
    if (equals == std::string_view::npos) {
      return InvalidArgument(fmt::format("role_limits: expected name=number, not '{}'", item));
    }
    ASSIGN_OR_RETURN(const int64_t limit, ReadLimit(name, item.substr(equals + 1)));
    if (name == "sessions") {
      limits.sessions = limit;
    } else if (name == "jobs") {
      limits.jobs = limit;
    } else if (name == "statements") {
      limits.statements = limit;
    } else if (name == "versions") {
      limits.versions = limit;
    } else if (name == "stored") {
      limits.stored_mebibytes = limit;
    } else {
      const auto nearest = NearestName(name, names);
      return InvalidArgument(fmt::format("role_limits: no limit '{}'", name))
          .Hint(nearest ? fmt::format("did you mean '{}'?", *nearest)
                        : "there are sessions, jobs, statements, versions and stored");
    }
  }
  return limits;
}

}  // namespace sluice::server
