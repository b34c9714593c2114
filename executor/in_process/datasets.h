#pragma once

#include <memory>

#include "base/status.h"

namespace sluice::catalog {
class DataSource;
class Dataset;
class DatasetSpec;
}  // namespace sluice::catalog

namespace sluice::plan {
class TrainPlan;
}

namespace sluice::executor {

// The frozen data of a training; frozen as long as this exists.
struct Datasets {
  std::unique_ptr<catalog::Dataset> train;
  std::unique_ptr<catalog::Dataset> validation;  // validation.select; else null
  bool Lost() const;                             // see Dataset
};
Result<Datasets> OpenDatasets(const plan::TrainPlan& plan, catalog::DataSource& source);
// The training dataset; if the plan has checkpoints, its rows are counted.
Result<catalog::DatasetSpec> CountedSpec(const plan::TrainPlan& plan, const Datasets& datasets);

// Whether workers and servers, processes of their own, train.
bool OnProcesses(const plan::TrainPlan& plan);

}  // namespace sluice::executor
