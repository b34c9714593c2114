#include "executor/pods/database_reach.h"

#include <fmt/core.h>

#include <string_view>

namespace sluice::executor {
namespace {

// The host of postgresql://user@HOST:PORT/database.
std::string_view HostOf(std::string_view url) {
  const size_t begin = url.find("://");
  std::string_view rest = begin == std::string_view::npos ? url : url.substr(begin + 3);
  rest = rest.substr(0, rest.find('/'));
  const size_t at = rest.rfind('@');
  rest = at == std::string_view::npos ? rest : rest.substr(at + 1);
  return rest.starts_with('[') ? rest.substr(1, rest.find(']') - 1)
                               : rest.substr(0, rest.find(':'));
}

bool IsThisMachine(std::string_view host) {
  return host.empty() || host == "localhost" || host == "::1" || host.starts_with("127.") ||
         host.starts_with("%2F") || host.starts_with("/");
}

}  // namespace

Status CheckReachableFromPods(const std::string& url) {
  if (!url.starts_with("postgresql:") && !url.starts_with("postgres:")) {
    return FailedPrecondition("a SQLite file cannot be read from pods: they share no file system")
        .Hint("train from PostgreSQL, or with engine.strategy='local'");
  }
  if (IsThisMachine(HostOf(url))) {
    return FailedPrecondition(fmt::format("pods cannot reach the database at '{}': for them that "
                                          "is their own machine",
                                          HostOf(url)))
        .Hint("give the gateway a --source with a host that pods know");
  }
  return OkStatus();
}

}  // namespace sluice::executor
