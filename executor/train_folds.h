#pragma once

#include "elastic/job/training_job.h"

namespace sluice::executor {

// Trains a network on a table that is too small to set rows aside (plan.folds): once without each
// fold, which says after every epoch how good the network is, and then on all rows, for as many
// epochs as were best over all folds together. The metrics are the means of the folds'. In this
// process.
Result<elastic::TrainOutcome> TrainByFolds(const elastic::TrainingJob& job);

}  // namespace sluice::executor
