#pragma once

#include "elastic/job/training_job.h"

namespace sluice::elastic {

// Trains a linear model to its optimum (plan.optimum), in this process and thread. The same rows
// give the same bits. Without a base model and without checkpoints.
Result<TrainOutcome> TrainToOptimum(const TrainingJob& job);

}  // namespace sluice::elastic
