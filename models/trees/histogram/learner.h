#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "models/pass_training.h"
#include "models/trees/gradient_boosting.h"
#include "models/trees/gradient_boosting_internal.h"

namespace sluice::models::histogram {

// Whether these trees are grown here. libxgboost grows those of dart, the exact and approx methods,
// rankings, absolute errors, survival times, and those judged by a metric of these.
bool Learns(const BoostingParameters& parameters);

// A model that training goes on from, in libxgboost's UBJSON, and its margins for some rows.
struct BaseModel {
  std::string bytes;
  std::function<Status(const RowMatrix& rows, std::vector<float>* margins)> margins;
};

struct Training {
  const ColumnLayout* layout = nullptr;
  const BoostingParameters* parameters = nullptr;
  const GradientBoosting::BatchSource* train = nullptr;
  const GradientBoosting::BatchSource* validation = nullptr;  // without next: none
  // Rows for passes are also held out by the workers, if `validation` has none.
  bool holds_out = false;
  const BaseModel* base = nullptr;  // null: none
  TrainingMemory memory = {};
  std::function<void(const GradientBoosting::Round&)> progress;
  std::stop_token stop, finish;
};

struct Trained {
  std::string bytes;  // UBJSON as libxgboost writes it
  // rows x outputs: those of the training rows when the last round had ended.
  std::vector<float> margins;
};

// Reads the rows once, or twice if they may not be kept, and grows all trees. The bytes depend only
// on the rows, their order (by which rows are sampled) and the parameters. Precondition: Learns.
Result<Trained> Train(const Training& training);

// The same model, in libxgboost's UBJSON, from rows that PassSums add up. `training.train` is not
// used, and there is no base. Precondition: Learns.
Result<std::string> Train(const Training& training, const PassRun& run);

}  // namespace sluice::models::histogram
