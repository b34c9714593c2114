#pragma once

#include <cstdint>
#include <stop_token>
#include <vector>

#include "executor/in_process/train_here.h"
#include "models/metrics/metric.h"

namespace sluice::plan {
class Candidate;
class Contest;
}  // namespace sluice::plan

namespace sluice::executor {

// The rows for a contest's candidates.
struct TrialRows {
  catalog::DataSource& source;
  const catalog::DatasetSpec& dataset;
  const catalog::DatasetSpec* validation = nullptr;  // of validation.select
  ProfileSum* profile = nullptr;                     // elastic::TrainingJob::profile
  const models::NetworkWeights* base = nullptr;      // elastic::TrainingJob::base
};

// The first shards with this many rows in all: rows from the whole dataset, if its shards are
// mixed.
catalog::DatasetSpec FirstRows(const catalog::DatasetSpec& dataset, int64_t rows);

// The true labels of the validation rows and a model's scores for them, in the same order.
struct Judgement {
  std::vector<double> labels;
  std::vector<float> weights;
  std::vector<double> predictions;
  size_t outputs = 1;
  std::vector<uint32_t> runs;  // models::BlendRows
};

// One candidate, trained and evaluated.
struct Trial {
  Status status;
  bool tried = false;
  bool cut_short = false;  // time ran out: this is the best that it reached
  Trained trained;         // with folds: the last fold's
  Judgement judgement;
  double correction = 0;  // factor for the predictions (label_correction.h); 0: none
  uint32_t best_epoch = 1;
  double value = 0;  // of the contest's metric
  double seconds = 0;
  int64_t rows_read = 0;
};

// Time limit of a trial, applied fold by fold as in SoftLimit. `stop` ends the trial without a
// result.
struct TrialLimits {
  std::stop_token stop;
  double seconds = 0;
  bool must = false;
};

// Trains and evaluates the candidate on the contest's rows, once for each fold if there are folds.
// A `share` below 1 limits its epochs or rounds.
Trial RunTrial(const plan::Candidate& candidate, const plan::Contest& contest, double share,
               const TrialRows& rows, const TrialLimits& limits,
               const elastic::ProgressCallback& progress);

// Trains the model of a successful trial on all rows, for as long as was best in the trial.
Result<Trained> TrainOnAll(const plan::Candidate& candidate, const Trial& trial,
                           const TrialRows& rows, std::stop_token stop,
                           const elastic::ProgressCallback& progress);

// All metrics of the task, and those that the statement names.
models::Metrics MetricsOf(const models::ModelSpec& model, const Judgement& judgement);

}  // namespace sluice::executor
