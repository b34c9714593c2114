#include "executor/contest/contest_clock.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/sleep.h"

namespace sluice::executor {
namespace {

// A training that is asked to finish first completes its epoch.
constexpr double kMinGraceSeconds = 1;
constexpr double kShortestLook = 0.02;  // seconds

}  // namespace

elastic::ProgressCallback ContestClock::Progress() {
  return [this](const elastic::Progress& now) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const TimePoint time = clock_.Now();
    if (!progress_ || SecondsBetween(reported_, time) < 1) {
      return;
    }
    reported_ = time;
    elastic::Progress told = now;
    const double left = seconds_ - lane_.elapsed();
    told.seconds_left = left > 0 ? left : now.seconds_left;
    progress_(told);
  };
}

bool SoftLimit::Wait(double until, const std::stop_token& over) const {
  for (double left = 0; (left = until - lane_.elapsed()) > 0;) {
    if (!SleepFor(std::chrono::duration<double>(std::max(left, kShortestLook)), over)) {
      return false;
    }
  }
  return true;
}

SoftLimit::SoftLimit(std::stop_token outer, double seconds, bool must)
    : outer_(std::move(outer), [this] { stop_.request_stop(); }),
      alarm_([this, seconds, must](const std::stop_token& over) {
        if (!Wait(seconds, over)) {
          return;
        }
        finish_.request_stop();
        if (!must && Wait(seconds + std::max(kMinGraceSeconds, seconds / 2), over)) {
          stop_.request_stop();
        }
      }) {}

}  // namespace sluice::executor
