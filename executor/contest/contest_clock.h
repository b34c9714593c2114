#pragma once

#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>

#include "base/clock.h"
#include "elastic/job/training_job.h"

namespace sluice::executor {

// Measures a contest's time and reports its progress: of several trainings at once, that of the one
// that reports, with the time left for all of them. Thread-safe.
class ContestClock {
 public:
  ContestClock(double seconds, const elastic::ProgressCallback& progress)
      : seconds_(seconds), progress_(progress) {}

  double elapsed() const { return SecondsBetween(started_, clock_.Now()); }
  elastic::ProgressCallback Progress();

 private:
  const double seconds_;
  const elastic::ProgressCallback& progress_;
  const SteadyClock clock_;
  const TimePoint started_ = clock_.Now();
  std::mutex mutex_;  // one thread reports at a time
  TimePoint reported_ = started_;
};

// Time limit of one training: after `seconds` it is asked to end with its best so far; half as long
// after that it is broken off, unless it must have a result.
class SoftLimit {
 public:
  SoftLimit(std::stop_token outer, double seconds, bool must);
  std::stop_token finish() const { return finish_.get_token(); }
  std::stop_token stop() const { return stop_.get_token(); }
  bool broken_off() const { return stop_.stop_requested(); }

 private:
  std::stop_source finish_;
  std::stop_source stop_;
  std::stop_callback<std::function<void()>> outer_;
  std::jthread alarm_;  // last: it uses the others
};

}  // namespace sluice::executor
