#include "elastic/fleet/cluster_state.h"

#include <algorithm>
#include <cmath>

namespace sluice::elastic {
namespace {

constexpr double kMemoryGrowth = 1.5;  // after a worker that ran out of memory

}  // namespace

Capacity RequestOf(const ClusterJob& job, const std::vector<ClusterNode>& nodes) {
  int64_t largest = 0;
  for (const ClusterNode& node : nodes) {
    largest = std::max(largest, node.capacity.memory_bytes);
  }
  Capacity request = job.worker;
  const double grown =
      static_cast<double>(request.memory_bytes) * std::pow(kMemoryGrowth, job.out_of_memory);
  request.memory_bytes = std::max(
      request.memory_bytes, static_cast<int64_t>(std::min(grown, static_cast<double>(largest))));
  return request;
}

double Fulfilment(uint32_t min, uint32_t max, uint32_t workers) {
  return max <= min ? 1
                    : (static_cast<double>(workers) - static_cast<double>(min)) /
                          static_cast<double>(max - min);
}

double ThroughputAt(const ClusterJob& job, uint32_t workers) {
  const double n = workers;
  std::pair<double, double> before{0, 0}, last{0, 0};
  for (const auto& [count, rate] : job.throughput) {
    const double higher = std::max(rate, last.second);  // more workers do not do less work: noise
    if (n <= count) {
      return last.second + (higher - last.second) * (n - last.first) / (count - last.first);
    }
    before = last;
    last = {count, higher};
  }
  if (last.first == 0) {
    return n;
  }
  return last.second +
         (last.second - before.second) / (last.first - before.first) * (n - last.first);
}

std::optional<uint32_t> KneeOf(const ClusterJob& job, double knee) {
  const uint32_t measured = job.throughput.empty() ? 0 : job.throughput.back().first;
  const double first = ThroughputAt(job, 1);
  for (uint32_t n = 1; n < measured; ++n) {
    if (ThroughputAt(job, n + 1) - ThroughputAt(job, n) < knee * first) {
      return n;
    }
  }
  return std::nullopt;
}

}  // namespace sluice::elastic
