#pragma once

#include "base/clock.h"
#include "base/mutex.h"

namespace sluice::elastic {

// Time during which a process that judges others by their silence was itself running. A process
// that was stopped, swapped out or on a sleeping machine finds afterwards that all others seem to
// have been silent for as long, although their messages wait to be read. So at most
// kLongestStepSeconds pass from one reading to the next; the judging process reads more often than
// that. Never ahead of `clock`, which must outlive it. Thread-safe.
class WakingClock final : public Clock {
 public:
  // Heartbeats come each second, and the shortest silence that counts is three: after a sleep just
  // before a heartbeat a second is left to read what has arrived.
  static constexpr double kLongestStepSeconds = 1;
  explicit WakingClock(const Clock& clock);
  TimePoint Now() const override EXCLUDES(mutex_);

 private:
  const Clock& clock_;
  mutable Mutex mutex_;
  mutable TimePoint looked_ GUARDED_BY(mutex_);  // on `clock_`
  mutable TimePoint now_ GUARDED_BY(mutex_);
};

}  // namespace sluice::elastic
