#pragma once

#include <optional>
#include <string>

#include "executor/in_process/calibrate.h"
#include "executor/in_process/datasets.h"
#include "executor/in_process/train_folds.h"

namespace sluice::catalog {
class Catalog;
}

namespace sluice::executor {

class JobRecord;

struct Trained {
  elastic::TrainOutcome outcome;
  std::string weights;  // in the stored form
  // Rows that it was not trained on, if needed.
  std::optional<ScoredRows> held_out = {};
  FoldChoice choice = {};
};

// The weights from which the training continues or starts (a user-defined model type may have
// initial values); nullopt: it starts from random ones.
Result<std::optional<models::NetworkWeights>> StartOf(const plan::TrainPlan& plan,
                                                      catalog::Catalog& catalog);
// Records a training's events as its job's.
elastic::EventCallback EventsOf(JobRecord& job);
// One training in this process, of any family, without a job's row. `base_trees`: the trees to
// continue from, or "".
Result<Trained> TrainOnce(const elastic::TrainingJob& job, const std::string& base_trees = "");
// Trains the plan in this process, whatever its family; stores nothing.
Result<Trained> TrainHere(const plan::TrainPlan& plan, catalog::DataSource& source,
                          catalog::Catalog& catalog, const Datasets& datasets, JobRecord& job,
                          const elastic::ProgressCallback& progress,
                          elastic::JobCheckpoints* checkpoints);

}  // namespace sluice::executor
