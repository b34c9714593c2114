#pragma once

#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "executor/calibrate.h"

namespace sluice::executor {

// A model that has just been trained, and what it was made of.
struct TrainedModel {
  const plan::TrainPlan& plan;
  catalog::DataSource& source;
  const catalog::DatasetSpec& dataset;
  const catalog::DatasetSpec* validation = nullptr;  // the rows of validation.select
  std::string_view weights;
  int64_t rows_trained = 0;
  const ScoredRows* held_out = nullptr;  // by folds
};

// What is found out about a model before it is stored: its calibration or correction, where it
// needs one, which classes it takes for which, and what it has learnt of its features, into `plan`;
// `metrics` become those of the model then. Reads rows. A model is none the worse where the
// features' part fails.
Status FinishModel(const TrainedModel& model, std::stop_token stop, plan::TrainPlan* plan,
                   std::vector<std::pair<std::string, double>>* metrics);

}  // namespace sluice::executor
