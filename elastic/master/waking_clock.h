#pragma once

#include "base/clock.h"
#include "base/mutex.h"

namespace sluice::elastic {

// Time as far as whoever judges others by their silence was awake to hear them. A process that was
// stopped, swapped out or on a machine that slept finds when it goes on that everybody has been
// silent for as long; their messages wait to be read. So at most kLongestStepSeconds pass from one
// look to the next, and who judges looks more often than that. Never ahead of `clock`, which must
// outlive it. Thread-safe.
class WakingClock final : public Clock {
 public:
  // Heartbeats come each second, and the shortest silence that counts is three: after a sleep just
  // before a heartbeat there is a second left to read what has come.
  static constexpr double kLongestStepSeconds = 1;
  explicit WakingClock(const Clock& clock);
  TimePoint Now() const override EXCLUDES(mutex_);

 private:
  const Clock& clock_;
  mutable Mutex mutex_;
  mutable TimePoint looked_ GUARDED_BY(mutex_);  // by `clock_`
  mutable TimePoint now_ GUARDED_BY(mutex_);
};

}  // namespace sluice::elastic
