#include "executor/jobs/metric_points.h"

namespace sluice::executor {

bool MetricPoints::TakeIfDue(TimePoint now) {
  if (SecondsBetween(taken_, now) < seconds_between_) {
    return false;
  }
  taken_ = now;
  return true;
}

bool MetricPoints::Stored(const std::vector<catalog::JobMetric>& points) {
  bool full = false;
  for (const catalog::JobMetric& point : points) {
    full = ++stored_[point.name] >= kMax || full;
  }
  return full;
}

bool MetricPoints::Thinned() {
  bool full = false;
  for (auto& [name, count] : stored_) {
    if (count < kMax) {
      continue;
    }
    count = count / 2 + 1;  // the last one stays
    if (name == catalog::kJobRowsMetric) {
      seconds_between_ *= 2;
    }
    full = full || count >= kMax;
  }
  return full;
}

}  // namespace sluice::executor
