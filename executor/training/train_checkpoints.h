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

// The checkpoints of a statement, from its start to its model.
namespace sluice::executor {

class JobRecord;
class ResultSink;

// Opens the checkpoints that the statement asks for; reports where the training continues. Errors:
// why it cannot.
Result<std::optional<elastic::JobCheckpoints>> OpenCheckpoints(const plan::TrainPlan& plan,
                                                               catalog::ModelStore& models,
                                                               ResultSink& sink);
void ReportDamaged(const std::optional<elastic::JobCheckpoints>& checkpoints, JobRecord& job);
// Called before the model is stored: from then on the checkpoints are no longer needed.
void ReportCommittingJob(const std::optional<elastic::JobCheckpoints>& checkpoints, JobRecord& job);
// Called when the model is stored: checkpoints left behind would only cost the next run of the
// statement a moment.
void FinishCheckpoints(std::optional<elastic::JobCheckpoints>& checkpoints, JobRecord& job);

}  // namespace sluice::executor
