#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "catalog/job_store.h"

namespace sluice::executor {

// How many points of a job's metrics there are while it runs: one a second at first; once a series
// has kMost, every second one is dropped, and new ones come half as often, so that the whole curve
// is kept. Pure; not thread-safe.
class MetricPoints {
 public:
  static constexpr int64_t kMost = 2'000;

  explicit MetricPoints(TimePoint now) : taken_(now) {}

  // Whether a point of the training's progress is due; it is taken, and the next one is due a while
  // later.
  bool TakeIfDue(TimePoint now);
  // These have been stored. True: some series is full, and JobStore::ThinMetrics is to be called.
  bool Stored(const std::vector<catalog::JobMetric>& points);
  // That was done. True: some series is full still.
  bool Thinned();

 private:
  double seconds_between_ = 1;
  TimePoint taken_;
  std::map<std::string, int64_t> stored_;  // by series
};

}  // namespace sluice::executor
