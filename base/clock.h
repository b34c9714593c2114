#pragma once

#include <chrono>
#include <cstdint>

namespace sluice {

// Monotonic time in nanoseconds from an arbitrary origin; passed in wherever a decision depends on
// time, so that tests and the simulation run on virtual time.
using TimePoint = std::chrono::nanoseconds;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint Now() const = 0;  // thread-safe
};

// std::chrono::steady_clock. Thread-safe.
class SteadyClock final : public Clock {
 public:
  TimePoint Now() const override;
};

inline double SecondsBetween(TimePoint from, TimePoint to) {
  return std::chrono::duration<double>(to - from).count();
}

// Wall-clock microseconds since 1970-01-01 UTC, for what is stored and shown, never for decisions.
int64_t WallMicros();

}  // namespace sluice
