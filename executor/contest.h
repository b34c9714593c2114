#pragma once

#include "executor/train.h"
#include "executor/train_here.h"

namespace sluice::executor {

// What a contest has come to: the plan of the model that won, with what each candidate was worth
// (plan.contest), and the model.
struct ContestResult {
  std::unique_ptr<plan::TrainPlan> plan;
  Trained trained;
};

// Tries the plan's candidates on the same validation rows, two at a time, and keeps the best, or a
// blend of several where that is better by more than chance; trained once more on all rows where
// the plan says so and time is left. The same rows, the same bits, unless time ran out. Candidates
// that fail are told and count for nothing; where all do it is an error. Cancelled by the job's
// stop, but for a search, which keeps what is best so far. Stores nothing.
Result<ContestResult> RunContest(const plan::TrainPlan& plan, catalog::DataSource& source,
                                 const Datasets& datasets, JobRecord& job,
                                 const elastic::ProgressCallback& progress);

}  // namespace sluice::executor
