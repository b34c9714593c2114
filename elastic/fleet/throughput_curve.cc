#include "elastic/fleet/throughput_curve.h"

#include <algorithm>

namespace sluice::elastic {
namespace {

// Measurements that a number of workers needs before it counts: one is of a second, in which an
// epoch may have ended.
constexpr int kSamplesNeeded = 4;
// Measurements after a change of that number which do not count.
constexpr int kSettling = 4;
// How much a later measurement changes what is known.
constexpr double kNewRateWeight = 0.2;

// Whether `middle` lies below the line from `before` to `after`, or on it.
bool IsBelow(const std::pair<uint32_t, double>& before, const std::pair<uint32_t, double>& middle,
             const std::pair<uint32_t, double>& after) {
  const double to_middle = static_cast<double>(middle.first) - before.first;
  const double to_after = static_cast<double>(after.first) - before.first;
  return (middle.second - before.second) * to_after <= (after.second - before.second) * to_middle;
}

}  // namespace

Throughput LeastConcave(const Throughput& points) {
  Throughput corners = {{0, 0}};
  double highest = 0;
  for (const auto& [workers, rate] : points) {
    highest = std::max(highest, rate);
    const std::pair<uint32_t, double> point(workers, highest);
    while (corners.size() > 1 && IsBelow(corners[corners.size() - 2], corners.back(), point)) {
      corners.pop_back();
    }
    corners.push_back(point);
  }
  corners.erase(corners.begin());
  return corners;
}

void ThroughputCurve::Measure(uint32_t workers, double rows_per_second) {
  if (workers != workers_) {
    workers_ = workers;
    settling_ = kSettling;
  }
  if (settling_ > 0) {
    --settling_;
    return;
  }
  Rate& known = rates_[workers];
  if (known.samples < kSamplesNeeded) {
    ++known.samples;
    known.rows_per_second += (rows_per_second - known.rows_per_second) / known.samples;
    return;
  }
  // Machines and database become busier or idler for any number of workers: otherwise what was
  // measured earlier would look better or worse than it would be now.
  const double faster = 1 + kNewRateWeight * (rows_per_second / known.rows_per_second - 1);
  for (auto& [count, measured] : rates_) {
    measured.rows_per_second *= faster;
  }
}

uint32_t ThroughputCurve::Fewest() const {
  const auto first = std::find_if(rates_.begin(), rates_.end(), [](const auto& each) {
    return each.second.samples >= kSamplesNeeded;
  });
  return first == rates_.end() ? 0 : first->first;
}

Throughput ThroughputCurve::Points() const {
  Throughput points;
  for (const auto& [workers, rate] : rates_) {
    if (rate.samples >= kSamplesNeeded) {
      points.emplace_back(workers, rate.rows_per_second);
    }
  }
  return LeastConcave(points);
}

}  // namespace sluice::elastic
