#include "elastic/master/waking_clock.h"

#include <algorithm>

namespace sluice::elastic {
namespace {

constexpr auto kLongestStep = std::chrono::duration_cast<TimePoint>(
    std::chrono::duration<double>(WakingClock::kLongestStepSeconds));

}  // namespace

WakingClock::WakingClock(const Clock& clock) : clock_(clock), looked_(clock.Now()), now_(looked_) {}

TimePoint WakingClock::Now() const {
  const MutexLock lock(mutex_);
  const TimePoint real = clock_.Now();
  now_ += std::min(real - looked_, kLongestStep);
  looked_ = real;
  return now_;
}

}  // namespace sluice::elastic
