#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace sluice::elastic {

// What a job's growth has taught: room that was taken from it again before its new workers had paid
// back their start makes the job wait longer before it grows into room the next time.
struct GrowthCaution {
  std::optional<TimePoint> grown;  // the last time, unless that was regretted
  double wait_seconds = 0;         // as learnt
  TimePoint unsettled{};           // the last time that room came and went

  bool operator==(const GrowthCaution&) const = default;
};

// Seconds.
struct GrowthWaits {
  double shortest = 0;  // where room stays, and at first
  double longest = 0;
  double payback = 0;  // a growth that lasts for less is regretted
};

// For how long there has to be room before the job grows, seconds: the shortest wait, doubled with
// each regret up to the longest one; the shortest again when room has stayed for a minute. Pure.
double WaitBeforeGrowth(const GrowthCaution& caution, const GrowthWaits& waits, TimePoint now);

// What a decision adds. `had`, `gets`: workers before and after it. `gave_up`: there was room for
// more at the last decision, and it has gone before the wait was over. Pure.
GrowthCaution CautionAfter(GrowthCaution caution, uint32_t had, uint32_t gets, bool gave_up,
                           const GrowthWaits& waits, TimePoint now);

}  // namespace sluice::elastic
