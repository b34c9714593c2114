#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace sluice::elastic {

// When a job's checkpoints begin: one after a number of steps, one at a time, and for at most half
// of the time: the next one waits as long as the last one took. Pure; not thread-safe.
class CheckpointSchedule {
 public:
  // `every`: steps from the beginning of one to the next; 0: there are none.
  explicit CheckpointSchedule(int64_t every) : every_(every) {}

  // True: one is to begin now, after this many steps. It is under way until Over reports that it is
  // on disk, or will not be.
  bool Begin(int64_t steps, TimePoint now);
  // The same, however few the steps. False: checkpoints are off, or one is under way.
  bool BeginNow(int64_t steps, TimePoint now);
  void Over(TimePoint now);
  // The job resumes from a checkpoint that was taken after this many steps.
  void StartFrom(int64_t steps) { last_steps_ = steps; }

 private:
  const int64_t every_;
  int64_t last_steps_ = 0;  // when the last one began
  std::optional<TimePoint> begun_;
  TimePoint not_before_{};
};

}  // namespace sluice::elastic
