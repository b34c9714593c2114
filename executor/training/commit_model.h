#pragma once

#include <stop_token>

#include "base/status.h"
#include "catalog/model_store.h"
#include "elastic/job/training_job.h"
#include "executor/training/finish_model.h"

namespace sluice::executor {

class JobRecord;

// Finds out what belongs to a model (calibration, effects of its features), stores it as a version
// and ends its job with the answer of the statement, whose plan is `statement`: all of it in one
// transaction. `stop` ends both, and the wait for a database. IsJobOver: the job has ended already,
// perhaps with this very commit, whose answer was lost.
Status CommitModel(const TrainedModel& model, const plan::TrainPlan& statement,
                   catalog::ModelStore& models, JobRecord& job,
                   const elastic::TrainOutcome& outcome, const std::stop_token& stop);

}  // namespace sluice::executor
