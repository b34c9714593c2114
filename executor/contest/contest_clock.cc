#include "executor/contest/contest_clock.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
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
        std::mutex mutex;
        std::condition_variable_any never;
        std::unique_lock<std::mutex> lock(mutex);
        const auto wait = [&](double duration) {
          never.wait_for(lock, over, std::chrono::duration<double>(duration), [] { return false; });
          return !over.stop_requested();
        };
        if (!wait(seconds)) {
          return;
        }
        finish_.request_stop();
        if (!must && wait(std::max(kMinGraceSeconds, seconds / 2))) {
          stop_.request_stop();
        }
      }) {}

}  // namespace sluice::executor
