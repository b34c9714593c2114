#include "elastic/master/checkpoint_schedule.h"

namespace sluice::elastic {

bool CheckpointSchedule::Begin(int64_t steps, TimePoint now) {
  if (every_ == 0 || begun_.has_value() || now < not_before_ || steps - last_steps_ < every_) {
    return false;
  }
  begun_ = now;
  last_steps_ = steps;
  return true;
}

bool CheckpointSchedule::BeginNow(int64_t steps, TimePoint now) {
  if (every_ == 0 || begun_.has_value()) {
    return false;
  }
  begun_ = now;
  last_steps_ = steps;
  return true;
}

void CheckpointSchedule::Over(TimePoint now) {
  if (begun_.has_value()) {
    not_before_ = now + (now - *begun_);
    begun_.reset();
  }
}

}  // namespace sluice::elastic
