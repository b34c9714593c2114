#pragma once

#include "base/status.h"
#include "elastic/job/training_job.h"
#include "executor/training/training_fleet.h"

namespace sluice::catalog {
class Catalog;
class DataSource;
}  // namespace sluice::catalog

namespace sluice::plan {
class TrainPlan;
}

namespace sluice::executor {

class JobRecord;

// Trains on processes, as the job's master, and commits the model version and the job's end in one
// transaction. A later master of the job (endpoint.term) continues from the journal in the jobs
// database; only one of them commits.
Status TrainOnProcesses(const plan::TrainPlan& plan, catalog::DataSource& source,
                        catalog::Catalog& catalog, JobRecord& job, const TrainingFleet& place,
                        const elastic::ProgressCallback& progress);

}  // namespace sluice::executor
