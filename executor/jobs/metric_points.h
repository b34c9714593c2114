#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "catalog/job_store.h"

namespace sluice::elastic {
struct Progress;
}

namespace sluice::executor {

// The point of a job's metrics that a training's progress makes at this time.
std::vector<catalog::JobMetric> PointOf(const elastic::Progress& progress, int64_t micros);

// Decides which points of a job's metrics are kept while it runs: one a second at first; once a
// series has kMax points, every second one is dropped and new ones come half as often, so the
// whole curve is kept. Pure; not thread-safe.
class MetricPoints {
 public:
  static constexpr int64_t kMax = 2'000;

  explicit MetricPoints(TimePoint now) : taken_(now) {}

  // Whether a point of the training's progress is due; if so, schedules the next one.
  bool TakeIfDue(TimePoint now);
  // These points were stored. True: some series is full, and JobStore::ThinMetrics has to be
  // called.
  bool Stored(const std::vector<catalog::JobMetric>& points);
  // ThinMetrics was called. True: some series is still full.
  bool Thinned();

 private:
  double seconds_between_ = 1;
  TimePoint taken_;
  std::map<std::string, int64_t> stored_;  // by series
};

}  // namespace sluice::executor
