#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/profile.h"
#include "catalog/job_store.h"

namespace sluice::executor {

// A training's profile is kept with its job as metrics, one for each phase in which a process spent
// time, named by this prefix and the phase.
inline constexpr std::string_view kProfileMetrics = "seconds_";

std::vector<catalog::JobMetric> MetricsOf(const Profile& profile, int64_t micros);
// The sum of what the job's processes have recorded; nullopt: nothing, as for a job of an earlier
// version.
std::optional<Profile> ProfileOf(const std::vector<catalog::JobMetric>& metrics);
// For people, phases in their order, those without time left out: ("database", "0.312 s, 23 %").
std::vector<std::pair<std::string, std::string>> DescribeProfile(const Profile& profile);

}  // namespace sluice::executor
