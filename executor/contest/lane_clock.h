#pragma once

#include <string>

#include "base/clock.h"

namespace sluice::executor {

// Measures what a thread has had of a time: seconds in which it could have run and others had all
// processors do not count, so that a limit on it cuts the same work off on a busy machine as on an
// idle one. The kernel tells them (schedstats: /proc/PID/task/TID/schedstat); where it does not,
// all seconds count. A machine that is busier than that counts as four times busy.
class LaneClock {
 public:
  LaneClock();  // of the calling thread
  // Seconds since construction. On any thread, while that thread lives.
  double elapsed() const;

 private:
  double Waited() const;

  const std::string path_;
  const SteadyClock clock_;
  const TimePoint started_ = clock_.Now();
  const double waited_before_;
};

}  // namespace sluice::executor
