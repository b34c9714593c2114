#include "executor/jobs/job_profile.h"

#include <fmt/core.h>

#include <algorithm>

namespace sluice::executor {

std::vector<catalog::JobMetric> MetricsOf(const Profile& profile, int64_t micros) {
  std::vector<catalog::JobMetric> metrics;
  for (size_t i = 0; i < kPhases; ++i) {
    const Phase phase = Profile::At(i);
    if (profile.Seconds(phase) > 0) {
      metrics.push_back({micros, 0, fmt::format("{}{}", kProfileMetrics, PhaseName(phase)),
                         profile.Seconds(phase)});
    }
  }
  return metrics;
}

std::optional<Profile> ProfileOf(const std::vector<catalog::JobMetric>& metrics) {
  std::optional<Profile> profile;
  for (const catalog::JobMetric& metric : metrics) {
    for (size_t i = 0; i < kPhases && metric.name.starts_with(kProfileMetrics); ++i) {
      const Phase phase = Profile::At(i);
      if (metric.name.substr(kProfileMetrics.size()) == PhaseName(phase)) {
        profile = profile.value_or(Profile());
        profile->Add(phase, metric.value);
      }
    }
  }
  return profile;
}

std::vector<std::pair<std::string, std::string>> DescribeProfile(const Profile& profile) {
  const double total = profile.Total();
  std::vector<std::pair<std::string, std::string>> lines;
  for (size_t i = 0; i < kPhases; ++i) {
    const double seconds = profile.Seconds(Profile::At(i));
    if (seconds > 0) {
      lines.emplace_back(PhaseName(Profile::At(i)),
                         fmt::format("{:.3f} s, {:.0f} %", seconds, 100 * seconds / total));
    }
  }
  lines.emplace_back("total", fmt::format("{:.3f} s", total));
  return lines;
}

}  // namespace sluice::executor
