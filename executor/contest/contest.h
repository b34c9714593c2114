#pragma once

#include "executor/in_process/datasets.h"
#include "executor/in_process/train_here.h"

namespace sluice::executor {

class JobRecord;

// A contest's result: the plan of the winning model, with every candidate's value (plan.contest),
// and the model.
struct ContestResult {
  std::unique_ptr<plan::TrainPlan> plan;
  Trained trained;
};

// Tries the plan's candidates on the same validation rows, two at a time, and keeps the best, or a
// blend of several if that is better by more than chance; trains it once more on all rows if the
// plan asks for it and time is left. The same rows give the same bits, unless time runs out. Failed
// candidates are reported and skipped; if all fail, that is an error. The job's stop cancels it,
// but a search then keeps the best so far. Stores nothing.
Result<ContestResult> RunContest(const plan::TrainPlan& plan, catalog::DataSource& source,
                                 const Datasets& datasets, JobRecord& job,
                                 const elastic::ProgressCallback& progress);

}  // namespace sluice::executor
