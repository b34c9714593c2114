#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "catalog/model_store.h"
#include "elastic/job/training_job.h"

namespace sluice::catalog {
class Catalog;
class DataSource;
class Dataset;
class DatasetSpec;
}  // namespace sluice::catalog

namespace sluice::elastic {
class Fleet;
struct JobEndpoint;
}  // namespace sluice::elastic

namespace sluice::plan {
class TrainPlan;
}

namespace sluice::executor {

struct Context;
class JobRecord;
class ResultSink;

// The result of a training whose model version is in the catalog.
struct TrainReport {
  catalog::ModelVersion version;
  double loss = 0;   // mean training loss of the last epoch
  int64_t rows = 0;  // training rows of the snapshot
  uint32_t epochs = 0;
  double seconds = 0;  // statement to committed model
  std::vector<std::pair<std::string, double>> metrics;
};

// The frozen data of a training; frozen as long as this exists.
struct Datasets {
  std::unique_ptr<catalog::Dataset> train;
  std::unique_ptr<catalog::Dataset> validation;  // validation.select; else null
  bool Lost() const;                             // see Dataset
};
Result<Datasets> OpenDatasets(const plan::TrainPlan& plan, catalog::DataSource& source);
// The training dataset; if the plan has checkpoints, its rows are counted.
Result<catalog::DatasetSpec> CountedSpec(const plan::TrainPlan& plan, const Datasets& datasets);

// Where a job's processes and its master run, and the data they read, which another process that
// outlives this master keeps open.
struct TrainingFleet {
  elastic::Fleet& fleet;
  const elastic::JobEndpoint& endpoint;
  const catalog::DatasetSpec& dataset;
  const catalog::DatasetSpec* validation = nullptr;
  // elastic::TrainingJob::held.
  std::function<void(const std::string& snapshot, const std::string& validation_snapshot)> held =
      {};
  // elastic::TrainingJob::suspend.
  std::stop_token suspend = {};
  std::function<void()> suspended = {};
};
// Trains on processes, as the job's master, and commits the model version in one transaction. A
// later master of the job (endpoint.term) continues from the journal in the jobs database; only one
// of them commits the model.
Result<TrainReport> TrainOnProcesses(const plan::TrainPlan& plan, catalog::DataSource& source,
                                     catalog::Catalog& catalog, JobRecord& job,
                                     const TrainingFleet& place,
                                     const elastic::ProgressCallback& progress);

// A train statement from plan to answer: creates the job, trains here or through a master process,
// sends the result row.
Status ExecuteTrain(const plan::TrainPlan& plan, Context& context, ResultSink& sink);

}  // namespace sluice::executor
