#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace sluice::elastic {

// When a job's checkpoints are begun: one after so many steps, one at a time, and never more than
// half of the time: the next one waits as long as the last one took. Pure; not thread-safe.
class CheckpointSchedule {
 public:
  // `every`: steps from the beginning of one to the next; 0: there are none.
  explicit CheckpointSchedule(int64_t every) : every_(every) {}

  // True: one is to be begun now, after so many steps. It is under way until Over says that it is
  // on the disk, or will not be.
  bool Begin(int64_t steps, TimePoint now);
  // The same, however few the steps are. False: there are none, or one is under way.
  bool BeginNow(int64_t steps, TimePoint now);
  void Over(TimePoint now);
  // The job goes on from a checkpoint that was taken after so many steps.
  void StartFrom(int64_t steps) { last_steps_ = steps; }

 private:
  const int64_t every_;
  int64_t last_steps_ = 0;  // when the last one was begun
  std::optional<TimePoint> begun_;
  TimePoint not_before_{};
};

}  // namespace sluice::elastic
