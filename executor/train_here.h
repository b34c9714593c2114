#pragma once

#include <optional>
#include <string>

#include "executor/calibrate.h"
#include "executor/train.h"

namespace sluice::executor {

struct Trained {
  elastic::TrainOutcome outcome;
  std::string weights;  // as they are stored
  // Rows that it was not trained on, where they are wanted.
  std::optional<ScoredRows> held_out = {};
};

// What the training continues from, or begins with (the values that a brought model type has);
// nullopt: it begins anew.
Result<std::optional<models::NetworkWeights>> StartOf(const plan::TrainPlan& plan,
                                                      catalog::Catalog& catalog);
// What happens in a training becomes events of its job.
elastic::EventCallback EventsOf(JobRecord& job);
// One training in this process, whatever its family, without a job's row. `base_trees`: the trees
// to continue from, or "".
Result<Trained> TrainOnce(const elastic::TrainingJob& job, const std::string& base_trees = "");
// Trains what the plan says in this process, whatever its family; stores nothing.
Result<Trained> TrainHere(const plan::TrainPlan& plan, catalog::DataSource& source,
                          catalog::Catalog& catalog, const Datasets& datasets, JobRecord& job,
                          const elastic::ProgressCallback& progress,
                          elastic::JobCheckpoints* checkpoints);

}  // namespace sluice::executor
