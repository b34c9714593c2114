#pragma once

#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>

#include "base/clock.h"
#include "elastic/job/training_job.h"
#include "executor/contest/lane_clock.h"

namespace sluice::executor {

// Measures a contest's time, by the thread that made it, and reports its progress: of several
// trainings at once, that of the one that reports, with the time left for all of them. Thread-safe.
class ContestClock {
 public:
  ContestClock(double seconds, const elastic::ProgressCallback& progress)
      : seconds_(seconds), progress_(progress) {}

  double elapsed() const { return lane_.elapsed(); }
  elastic::ProgressCallback Progress();

 private:
  const double seconds_;
  const elastic::ProgressCallback& progress_;
  const LaneClock lane_;
  const SteadyClock clock_;
  std::mutex mutex_;  // one thread reports at a time
  TimePoint reported_ = clock_.Now();
};

// Time limit of one training on the calling thread: after `seconds` (LaneClock) it is asked to end
// with its best so far; half as long after that it is broken off, unless it must have a result.
class SoftLimit {
 public:
  SoftLimit(std::stop_token outer, double seconds, bool must);
  std::stop_token finish() const { return finish_.get_token(); }
  std::stop_token stop() const { return stop_.get_token(); }
  bool broken_off() const { return stop_.stop_requested(); }

 private:
  // False: it is over earlier.
  bool Wait(double until, const std::stop_token& over) const;

  const LaneClock lane_;
  std::stop_source finish_;
  std::stop_source stop_;
  std::stop_callback<std::function<void()>> outer_;
  std::jthread alarm_;  // last: it uses the others
};

}  // namespace sluice::executor
