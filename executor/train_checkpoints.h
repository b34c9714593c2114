#pragma once

#include <optional>

#include "base/status.h"
#include "elastic/job/job_checkpoints.h"

namespace sluice::catalog {
class ModelStore;
}

namespace sluice::plan {
class TrainPlan;
}

// The checkpoints of a statement, from its beginning to its model.
namespace sluice::executor {

class JobRecord;
class ResultSink;

// The checkpoints that the statement asks for; says where the training goes on. Errors: why it
// cannot.
Result<std::optional<elastic::JobCheckpoints>> OpenCheckpoints(const plan::TrainPlan& plan,
                                                               catalog::ModelStore& models,
                                                               ResultSink& sink);
void TellDamaged(const std::optional<elastic::JobCheckpoints>& checkpoints, JobRecord& job);
// Before the model is stored: from then on the checkpoints are left over.
void TellCommittingJob(const std::optional<elastic::JobCheckpoints>& checkpoints, JobRecord& job);
// The model is there: what is left behind would cost the next run of the statement a moment.
void FinishCheckpoints(std::optional<elastic::JobCheckpoints>& checkpoints, JobRecord& job);

}  // namespace sluice::executor
