#pragma once

#include "base/status.h"
#include "elastic/job/training_job.h"
#include "executor/training/train_report.h"
#include "executor/training/training_fleet.h"

namespace sluice::catalog {
class Catalog;
class DataSource;
}  // namespace sluice::catalog

namespace sluice::executor {

// Trains on processes, as the job's master, and commits the model version in one transaction. A
// later master of the job (endpoint.term) continues from the journal in the jobs database; only one
// of them commits the model.
Result<TrainReport> TrainOnProcesses(const plan::TrainPlan& plan, catalog::DataSource& source,
                                     catalog::Catalog& catalog, JobRecord& job,
                                     const TrainingFleet& place,
                                     const elastic::ProgressCallback& progress);

}  // namespace sluice::executor
