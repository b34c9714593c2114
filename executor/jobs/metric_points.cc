#include "executor/jobs/metric_points.h"

#include "elastic/job/training_job.h"

namespace sluice::executor {

std::vector<catalog::JobMetric> PointOf(const elastic::Progress& progress, int64_t micros) {
  const auto step = static_cast<int64_t>(progress.epoch.value());
  std::vector<catalog::JobMetric> point = {
      {micros, step, catalog::kJobRateMetric, progress.rows_per_second},
      {micros, step, catalog::kJobRowsMetric, static_cast<double>(progress.rows_done)},
      {micros, step, catalog::kJobTrainersMetric, static_cast<double>(progress.workers)}};
  if (progress.rows_done > 0) {  // otherwise there is nothing to record yet
    point.push_back({micros, step, catalog::kJobLossMetric, progress.loss});
  }
  return point;
}

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
