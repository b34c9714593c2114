#pragma once

#include <optional>

#include "base/clock.h"

namespace sluice::elastic {

// A job that is to be suspended waits for a last checkpoint, but not for ever. Pure; not
// thread-safe.
class Suspension {
 public:
  static constexpr double kLongestSeconds = 60;

  // The first call counts.
  void Request(TimePoint now) { since_ = since_.value_or(now); }
  bool requested() const { return since_.has_value(); }
  // The job ends without that checkpoint, and resumes from the one before.
  bool Overdue(TimePoint now) const {
    return requested() && SecondsBetween(*since_, now) >= kLongestSeconds;
  }
  // The checkpoint for which the job waits has begun.
  void OnLastCheckpoint() { last_checkpoint_ = true; }
  bool last_checkpoint() const { return last_checkpoint_; }

 private:
  std::optional<TimePoint> since_;
  bool last_checkpoint_ = false;
};

}  // namespace sluice::elastic
