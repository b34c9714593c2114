#include "k8s/rfc3339.h"

#include <fmt/core.h>

#include <ctime>

namespace sluice::k8s {
namespace {

constexpr int64_t kMicrosPerSecond = 1'000'000;

}  // namespace

std::string Rfc3339(int64_t micros) {
  const auto seconds = static_cast<time_t>(micros / kMicrosPerSecond);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

std::optional<int64_t> MicrosOf(const std::string& rfc3339) {
  std::tm parts{};
  const char* const end = strptime(rfc3339.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  return end == nullptr ? std::nullopt
                        : std::optional<int64_t>(int64_t{timegm(&parts)} * kMicrosPerSecond);
}

}  // namespace sluice::k8s
