#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "catalog/model_store.h"
#include "elastic/job.h"

namespace sluice::catalog {
class DataSource;
}

namespace sluice::elastic {
class Fleet;
}

namespace sluice::plan {
class TrainPlan;
}

namespace sluice::executor {

struct Context;
class JobRecord;
class ResultSink;

// What a training has come to, once its model version is in the catalog.
struct TrainReport {
  catalog::ModelVersion version;
  double loss = 0;   // mean training loss of the last epoch
  int64_t rows = 0;  // training rows of the snapshot
  uint32_t epochs = 0;
  double seconds = 0;  // statement to committed model
  std::vector<std::pair<std::string, double>> metrics;
};

// Where the processes of a job run, and where its master sits.
struct TrainingFleet {
  elastic::Fleet& fleet;
  const elastic::MasterSeat& seat;
};

// Opens the dataset, trains (in this process, or on `fleet` when the plan asks for processes), and
// commits the model version in one transaction. Nothing is left behind on an error but
// checkpoints, where the plan asks for them: then the same plan goes on from the newest.
Result<TrainReport> TrainAndCommit(const plan::TrainPlan& plan, catalog::DataSource& source,
                                   JobRecord& job, const TrainingFleet* fleet,
                                   const elastic::ProgressCallback& progress);

// A train statement from plan to answer: makes the job, trains here or through a master process,
// sends the result row.
Status ExecuteTrain(const plan::TrainPlan& plan, Context& context, ResultSink& sink);

}  // namespace sluice::executor
