#pragma once

#include <vector>

#include "elastic/job/training_job.h"

namespace sluice::elastic {

// Trains a linear model to its optimum (plan.optimum), in this process and thread. The same rows
// give the same bits. Without a base model and without checkpoints.
Result<TrainOutcome> TrainToOptimum(const TrainingJob& job);

// The same for a table that is too small to hold rows out: trained on all rows; also scores each
// row with a model that was trained without the row's fold. The rows are read once. Computes no
// metrics: the caller can do so from these scores.
struct HeldOutScores {
  size_t outputs = 0;
  std::vector<double> scores;  // rows x outputs
  std::vector<double> labels;  // models::FeatureBatch::OwnLabels
  std::vector<float> weights;
};
Result<TrainOutcome> TrainToOptimumByFolds(const TrainingJob& job, HeldOutScores* held_out);

}  // namespace sluice::elastic
