#pragma once

#include <stop_token>
#include <string>

#include "base/status.h"
#include "elastic/master/progress.h"
#include "elastic/master/train_outcome.h"

namespace sluice::catalog {
class DataSource;
class DatasetSpec;
}  // namespace sluice::catalog

namespace sluice::plan {
class TrainPlan;
}

namespace sluice::executor {

// Trains a linear model to its optimum (plan.optimum) in this process and thread: the rows are read
// shard after shard, in the shards' order, and kept in memory where they are needed again. The same
// rows, the same bits. `validation`: of validation.select, or null.
Result<elastic::TrainOutcome> TrainToOptimum(const plan::TrainPlan& plan,
                                             catalog::DataSource& source,
                                             const catalog::DatasetSpec& dataset,
                                             const catalog::DatasetSpec* validation,
                                             const elastic::ProgressCallback& progress,
                                             std::stop_token stop);

}  // namespace sluice::executor
