#include "executor/in_process/datasets.h"

#include <algorithm>

#include "catalog/data_source.h"
#include "catalog/dataset.pb.h"
#include "planner/plan.pb.h"

namespace sluice::executor {

bool OnProcesses(const plan::TrainPlan& plan) {
  return plan.strategy().kind() != plan::Strategy::LOCAL;
}

bool Datasets::Lost() const {
  return train->Lost() || (validation != nullptr && validation->Lost());
}

Result<Datasets> OpenDatasets(const plan::TrainPlan& plan, catalog::DataSource& source) {
  catalog::DatasetOptions options;
  options.rows_per_shard = plan.rows_per_shard();
  options.many_processes = OnProcesses(plan);
  // Trees do not depend on the order of rows, but their competitors do.
  const auto& candidates = plan.contest().candidates();
  options.mixed = plan.shuffle() || std::any_of(candidates.begin(), candidates.end(),
                                                [](const plan::Candidate& candidate) {
                                                  return candidate.plan().shuffle();
                                                });
  Datasets datasets;
  ASSIGN_OR_RETURN(datasets.train, source.OpenDataset(plan.select(), options));
  if (plan.split().kind() == plan::Split::SELECT) {
    ASSIGN_OR_RETURN(datasets.validation, source.OpenDataset(plan.split().select(), options));
  }
  return datasets;
}

Result<catalog::DatasetSpec> CountedSpec(const plan::TrainPlan& plan, const Datasets& datasets) {
  catalog::DatasetSpec data = datasets.train->spec();
  if (plan.has_checkpoints() && data.counted_rows() == 0) {
    ASSIGN_OR_RETURN(const int64_t rows, datasets.train->CountRows());
    data.set_counted_rows(rows);
  }
  return data;
}

}  // namespace sluice::executor
