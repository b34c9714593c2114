#pragma once

#include "executor/contest/contest.h"
#include "executor/training/training_fleet.h"

namespace sluice::catalog {
class JobStore;
}

namespace sluice::executor {

// As RunContest, for a plan whose candidates train on processes: one after the other, each on all
// of the job's. The best is kept as it was trained, without another training on all rows. Every
// training that is over is recorded with the job, so that a later master (place.endpoint.term) goes
// on with the one that was under way. The job's stop ends it, and it then keeps the best so far.
Result<ContestResult> SearchOnFleet(const plan::TrainPlan& plan, catalog::DataSource& source,
                                    catalog::JobStore& jobs, JobRecord& job,
                                    const TrainingFleet& place,
                                    const elastic::ProgressCallback& progress);

}  // namespace sluice::executor
