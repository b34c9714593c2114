#pragma once

#include <cstdint>

#include "base/clock.h"
#include "elastic/job/training_job.h"

namespace sluice::executor {

// Reports the progress of several trainings, which take about equally long, as that of one. For one
// thread.
class TrainingStages {
 public:
  // `progress`: may be empty, and outlives this.
  TrainingStages(const elastic::ProgressCallback& progress, uint32_t count)
      : progress_(progress), count_(count) {}

  void Next() { ++stage_; }  // the next one begins
  // At most once a second.
  void Report(elastic::Progress now);

 private:
  const elastic::ProgressCallback& progress_;
  const uint32_t count_;
  uint32_t stage_ = 0;
  const SteadyClock clock_;
  const TimePoint started_ = clock_.Now();
  TimePoint told_ = started_;
};

}  // namespace sluice::executor
