#pragma once

#include <stop_token>

#include "base/status.h"
#include "catalog/model_store.h"
#include "elastic/job/training_job.h"
#include "executor/training/finish_model.h"

namespace sluice::executor {

class JobRecord;

// Finds out what belongs to a model (calibration, effects of its features) and stores it as a
// version, in one transaction. `stop` ends both, and the wait for a database.
Result<catalog::ModelVersion> CommitModel(const TrainedModel& model, catalog::ModelStore& models,
                                          JobRecord& job, const elastic::TrainOutcome& outcome,
                                          const std::stop_token& stop);

}  // namespace sluice::executor
