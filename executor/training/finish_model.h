#pragma once

#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "executor/in_process/calibrate.h"

namespace sluice::executor {

// A newly trained model, and what it was trained on.
struct TrainedModel {
  const plan::TrainPlan& plan;
  catalog::DataSource& source;
  const catalog::DatasetSpec& dataset;
  const catalog::DatasetSpec* validation = nullptr;  // the rows of validation.select
  std::string_view weights;
  int64_t rows_trained = 0;
  const ScoredRows* held_out = nullptr;  // scores by folds
};

// Completes a model before it is stored: its calibration or correction if it needs one, its
// confusion matrix, and what it has learnt from its features go into `plan`; `metrics` are updated
// to match. Reads rows. If the features' part fails, the model is stored without it.
Status FinishModel(const TrainedModel& model, std::stop_token stop, plan::TrainPlan* plan,
                   std::vector<std::pair<std::string, double>>* metrics);

}  // namespace sluice::executor
