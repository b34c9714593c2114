#pragma once

#include "executor/train.h"

namespace sluice::executor {

// Of a plan with label trials: trains shortly on each scale of the label and on the model's own, on
// rows of the table's beginning (its shards are mixed), and judges by validation rows, folds where
// the plan has none. The plan with the scale that is better than the model's own by more than
// chance, or as it was; which, and why, is told to the job and stands in `told`. In this process.
Result<plan::TrainPlan> ChooseLabelScale(const plan::TrainPlan& plan, catalog::DataSource& source,
                                         JobRecord& job, const elastic::ProgressCallback& progress);

}  // namespace sluice::executor
