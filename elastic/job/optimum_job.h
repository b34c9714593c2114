#pragma once

#include <vector>

#include "elastic/job/training_job.h"

namespace sluice::elastic {

// Trains a linear model to its optimum (plan.optimum), in this process and thread. The same rows
// give the same bits. Without a base model and without checkpoints.
Result<TrainOutcome> TrainToOptimum(const TrainingJob& job);

// The same on a table that is too small to set rows aside: trained on all rows, and of each row
// what a model says of it that was trained without its fold. The rows are read once. Without
// metrics, for whoever has the held-out rows has them.
struct HeldOutScores {
  size_t outputs = 0;
  std::vector<float> scores;  // rows x outputs
  std::vector<float> labels, weights;
};
Result<TrainOutcome> TrainToOptimumByFolds(const TrainingJob& job, HeldOutScores* held_out);

}  // namespace sluice::elastic
