#pragma once

#include <string>

#include "base/status.h"
#include "elastic/job/training_job.h"

namespace sluice::executor {

// Trains gradient-boosted trees on one worker, fed by the same streams as the networks. The rows
// that the split sets aside are used for validation. `base` has the weights to continue from, or is
// empty; `weights` receives the trained model.
Result<elastic::TrainOutcome> TrainTrees(const elastic::TrainingJob& job, const std::string& base,
                                         std::string* weights);

}  // namespace sluice::executor
