#include "executor/management/job_allocation.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

#include "base/median.h"
#include "elastic/fleet/autoscaler.h"

namespace sluice::executor {
namespace {

constexpr int64_t kSecond = 1'000'000;

// The events that explain a number of workers.
bool Explains(std::string_view kind) {
  constexpr std::string_view kKinds[] = {
      "workers_granted",   "workers_give_way",  "servers_placed", "worker_lost",
      "workers_withdrawn", "workers_have_room", "memory_raised",  "worker_not_replaced"};
  return std::find(std::begin(kKinds), std::end(kKinds), kind) != std::end(kKinds);
}

// The points of one metric by their time.
std::map<int64_t, double> PointsOf(const std::vector<catalog::JobMetric>& metrics,
                                   std::string_view name) {
  std::map<int64_t, double> points;
  for (const catalog::JobMetric& metric : metrics) {
    if (metric.name == name) {
      points[metric.micros] = metric.value;
    }
  }
  return points;
}

}  // namespace

std::vector<Allocation> AllocationsOf(const std::vector<catalog::JobMetric>& metrics,
                                      const std::vector<catalog::JobEvent>& events) {
  std::vector<Allocation> all;
  for (const auto& [micros, workers] : PointsOf(metrics, catalog::kJobWorkersMetrics[0])) {
    const auto count = static_cast<int64_t>(workers);
    if (!all.empty() && micros - all.back().micros < kSecond) {
      all.back().workers = count;  // of a change that is still under way
    } else if (all.empty() || all.back().workers != count) {
      all.push_back({micros, count, ""});
    }
  }
  // What happened last before the change was complete, and after the one before.
  for (size_t i = 0; i < all.size(); ++i) {
    const int64_t from = i == 0 ? 0 : all[i - 1].micros + kSecond;
    for (const catalog::JobEvent& event : events) {
      if (Explains(event.kind) && event.micros >= from && event.micros < all[i].micros + kSecond) {
        all[i].reason = event.detail;
      }
    }
  }
  const auto same = [](const Allocation& one, const Allocation& other) {
    return one.workers == other.workers;
  };
  all.erase(std::unique(all.begin(), all.end(), same), all.end());
  if (all.size() > kMaxAllocations) {
    all.erase(all.begin(), all.end() - static_cast<std::ptrdiff_t>(kMaxAllocations));
  }
  return all;
}

elastic::Throughput ThroughputOf(const std::vector<catalog::JobMetric>& metrics) {
  const std::map<int64_t, double> rates = PointsOf(metrics, "rows_per_second");
  std::map<uint32_t, std::vector<double>> measured;
  std::optional<double> before;
  for (const auto& [micros, workers] : PointsOf(metrics, "workers")) {
    const auto rate = rates.find(micros);
    if (before == workers && workers > 0 && rate != rates.end() && rate->second > 0) {
      measured[static_cast<uint32_t>(workers)].push_back(rate->second);
    }
    before = workers;
  }
  elastic::Throughput throughput;
  throughput.reserve(measured.size());
  for (const auto& [workers, values] : measured) {
    throughput.emplace_back(workers, MedianOf(values));
  }
  return throughput;
}

std::string DescribeKnee(const elastic::Throughput& throughput) {
  if (throughput.size() < 2) {
    return "";
  }
  elastic::ClusterJob job;
  job.throughput = elastic::LeastConcave(throughput);
  const std::optional<uint32_t> knee = elastic::KneeOf(job, elastic::AutoscalerOptions().knee);
  if (!knee) {
    return fmt::format("beyond {} workers", throughput.back().first);
  }
  const double more = elastic::ThroughputAt(job, *knee + 1) - elastic::ThroughputAt(job, *knee);
  return fmt::format("{} worker{}: one more adds {:.0f} % of the first one's rows", *knee,
                     *knee == 1 ? "" : "s", 100 * more / elastic::ThroughputAt(job, 1));
}

}  // namespace sluice::executor
