#pragma once

#include <stop_token>
#include <string>

#include "base/status.h"
#include "elastic/job/training_job.h"

namespace sluice::catalog {
class Dataset;
}

namespace sluice::executor {

// Trains gradient-boosted trees on one worker, fed by the same streams as the networks. The rows
// that the split sets aside are kept for validation. `base` holds the weights to continue from, or
// is empty; `weights` receives the trained model.
Result<elastic::TrainOutcome> TrainTrees(const plan::TrainPlan& plan, catalog::DataSource& source,
                                         const catalog::Dataset& dataset,
                                         const catalog::Dataset* validation,
                                         const std::string& base,
                                         const elastic::ProgressCallback& progress,
                                         std::stop_token stop, std::string* weights);

}  // namespace sluice::executor
