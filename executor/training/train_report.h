#pragma once

#include <cstdint>
#include <string>

#include "catalog/model_store.h"
#include "elastic/job/training_job.h"

namespace sluice::plan {
class TrainPlan;
}

namespace sluice::executor {

class JobRecord;

// From the job's start to `micros` (wall clock).
double SecondsUntil(int64_t micros, JobRecord& job);

// The statement's answer (AnswerBytes), one row (planner::TrainResult): `plan` is the statement's,
// `version` the model that is being stored.
std::string AnswerOf(const plan::TrainPlan& plan, const catalog::ModelVersion& version,
                     const elastic::TrainOutcome& outcome, double seconds);

// The training's figures for the job's row, and for its metrics.
void CountRows(const elastic::TrainOutcome& outcome, JobRecord& job);
void AddMetrics(const catalog::ModelVersion& version, const elastic::TrainOutcome& outcome,
                JobRecord& job);

}  // namespace sluice::executor
