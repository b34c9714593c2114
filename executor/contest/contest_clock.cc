#include "executor/contest/contest_clock.h"
#include "base/sleep.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace sluice::executor {
namespace {

// A training that is asked to finish first completes its epoch.
constexpr double kMinGraceSeconds = 1;

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
    const double left = seconds_ - SecondsBetween(started_, time);
    told.seconds_left = left > 0 ? left : now.seconds_left;
    progress_(told);
  };
}

SoftLimit::SoftLimit(std::stop_token outer, double seconds, bool must)
    : outer_(std::move(outer), [this] { stop_.request_stop(); }),
      alarm_([this, seconds, must](const std::stop_token& over) {
        using Seconds = std::chrono::duration<double>;
        if (!SleepFor(Seconds(seconds), over)) {
          return;
        }
        finish_.request_stop();
        if (!must && SleepFor(Seconds(std::max(kMinGraceSeconds, seconds / 2)), over)) {
          stop_.request_stop();
        }
      }) {}

}  // namespace sluice::executor
