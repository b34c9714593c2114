#include "server/config/descriptor_limit.h"

#include <fmt/core.h>
#include <sys/resource.h>

namespace sluice::server {
namespace {

// A worker of a small fleet needs some 30. Below this limit processes would wait for connections
// that cannot be opened.
constexpr rlim_t kMinDescriptors = 64;

}  // namespace

Status RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return OkStatus();
  }
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_max >= kMinDescriptors) {
    return OkStatus();
  }
  return ResourceExhausted(
             fmt::format("a process may open {} files and connections here; sluice needs {}",
                         limit.rlim_max, kMinDescriptors))
      .SqlState("53000")
      .Hint("ulimit -n 1024, or LimitNOFILE=1024 in a service's unit");
}

}  // namespace sluice::server
