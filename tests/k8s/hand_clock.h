#pragma once

#include <atomic>

#include "base/clock.h"

namespace sluice::k8s {

// A clock that a test advances. Thread-safe.
class HandClock final : public Clock {
 public:
  TimePoint Now() const override { return TimePoint(now_.load()); }
  void Advance(TimePoint by) { now_ += by.count(); }

 private:
  std::atomic<TimePoint::rep> now_ = 0;
};

}  // namespace sluice::k8s
