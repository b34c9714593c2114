#pragma once

#include "base/status.h"
#include "elastic/job/training_job.h"

namespace sluice::elastic {

// Trains a network in this process: master, one worker and the parameter shard as direct calls.
Result<TrainOutcome> TrainInProcess(const TrainingJob& job);

}  // namespace sluice::elastic
