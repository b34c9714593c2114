#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "catalog/model_store.h"
#include "elastic/job/training_job.h"

namespace sluice::plan {
class TrainPlan;
}

namespace sluice::executor {

class JobRecord;
class ResultRows;

// The result of a training whose model version is in the catalog.
struct TrainReport {
  catalog::ModelVersion version;
  double loss = 0;   // mean training loss of the last epoch
  int64_t rows = 0;  // training rows of the snapshot
  uint32_t epochs = 0;
  double seconds = 0;  // statement to committed model
  std::vector<std::pair<std::string, double>> metrics;
};

// The report of a committed training; the job's row and metrics get its figures.
TrainReport ReportOn(catalog::ModelVersion version, const elastic::TrainOutcome& outcome,
                     double seconds, JobRecord& job);
// The report of an earlier process, which was lost after it had stored `version`.
TrainReport ReportOnStored(catalog::ModelVersion version, JobRecord& job);

// From the job's start to `micros` (wall clock).
double SecondsUntil(int64_t micros, JobRecord& job);

// The statement's answer, one row (planner::TrainResult).
ResultRows AnswerOf(const plan::TrainPlan& plan, const TrainReport& report);

}  // namespace sluice::executor
