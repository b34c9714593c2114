#pragma once

#include <stop_token>
#include <vector>

#include "executor/train_here.h"
#include "models/metrics/metric.h"

namespace sluice::plan {
class Candidate;
class Contest;
}  // namespace sluice::plan

namespace sluice::executor {

// Where a contest's candidates find their rows.
struct TrialRows {
  catalog::DataSource& source;
  const catalog::DatasetSpec& dataset;
  const catalog::DatasetSpec* validation = nullptr;  // of validation.select
};

// The first shards, of so many rows together: rows from all over the dataset, where its shards are
// mixed.
catalog::DatasetSpec FirstRows(const catalog::DatasetSpec& dataset, int64_t rows);

// What is true of the validation rows, and what a model says of them, in one order.
struct Judgement {
  std::vector<float> labels;
  std::vector<float> weights;
  std::vector<float> predictions;
  size_t outputs = 1;
};

// One candidate, trained and judged.
struct Trial {
  Status status;
  bool tried = false;
  bool cut_short = false;  // time ran out: this is the best that it came to
  Trained trained;         // of folds: the last one's
  Judgement judgement;
  double correction = 0;  // of the predictions (label_correction.h); 0: none
  uint32_t best_epoch = 1;
  double value = 0;  // of the contest's metric
  double seconds = 0;
  int64_t rows_read = 0;
};

// How long a trial may take: as SoftLimit says, fold by fold. `stop` ends it with nothing.
struct TrialLimits {
  std::stop_token stop;
  double seconds = 0;
  bool must = false;
};

// Trains the candidate on the contest's rows, once for each fold where it has folds, and judges it.
// `share` of its epochs or rounds at most, where that is below 1.
Trial RunTrial(const plan::Candidate& candidate, const plan::Contest& contest, double share,
               const TrialRows& rows, const TrialLimits& limits,
               const elastic::ProgressCallback& progress);

// The model that a trial has shown to be worth it, on all rows: as long as was best.
Result<Trained> TrainOnAll(const plan::Candidate& candidate, const Trial& trial,
                           const TrialRows& rows, std::stop_token stop,
                           const elastic::ProgressCallback& progress);

// Every metric of the task, and those asked for.
models::Metrics MetricsOf(const models::ModelSpec& model, const Judgement& judgement);

}  // namespace sluice::executor
