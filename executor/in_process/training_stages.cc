#include "executor/in_process/training_stages.h"

namespace sluice::executor {

void TrainingStages::Report(elastic::Progress now) {
  const TimePoint time = clock_.Now();
  if (!progress_ || SecondsBetween(told_, time) < 1) {
    return;
  }
  told_ = time;
  const double seconds = SecondsBetween(started_, time);
  now.seconds_left += stage_ > 0 ? seconds / stage_ * (count_ - stage_ - 1)
                                 : (seconds + now.seconds_left) * (count_ - 1);
  progress_(now);
}

}  // namespace sluice::executor
