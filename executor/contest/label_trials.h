#pragma once

#include "base/status.h"
#include "elastic/job/training_job.h"

namespace sluice::catalog {
class Catalog;
class DataSource;
}  // namespace sluice::catalog
namespace sluice::plan {
class TrainPlan;
}

namespace sluice::executor {

class JobRecord;

// For a plan with label trials: trains briefly on each scale of the label and on the model's own,
// on rows from the beginning of the table (its shards are mixed), and compares them by validation
// rows, or folds if the plan has none. Returns the plan with the scale that beats the model's own
// by more than chance, or unchanged; the choice and its reason go to the job and to `told`.
// `catalog` has the weights that the training starts from. Runs in this process.
Result<plan::TrainPlan> ChooseLabelScale(const plan::TrainPlan& plan, catalog::DataSource& source,
                                         catalog::Catalog& catalog, JobRecord& job,
                                         const elastic::ProgressCallback& progress);

}  // namespace sluice::executor
