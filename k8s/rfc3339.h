#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace sluice::k8s {

// "2026-11-23T20:14:05Z", Kubernetes' form of times.
std::string Rfc3339(int64_t micros);
// nullopt: not a valid time.
std::optional<int64_t> MicrosOf(const std::string& rfc3339);

}  // namespace sluice::k8s
