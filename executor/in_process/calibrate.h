#pragma once

#include <cstddef>
#include <stop_token>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace sluice::catalog {
class DataSource;
class DatasetSpec;
}  // namespace sluice::catalog
namespace sluice::plan {
class TrainPlan;
}

namespace sluice::executor {

// Rows that a model was not trained on, with its scores.
struct ScoredRows {
  size_t outputs = 0;
  std::vector<double> scores;  // rows x outputs
  std::vector<double> labels;
  std::vector<float> weights;  // empty: every row weighs 1; class weights are not applied

  size_t rows() const { return labels.size(); }
  void Append(const ScoredRows& other);
};

bool WantsCalibration(const plan::TrainPlan& plan);

// The validation rows of a newly trained model: all of them, or as many as fit in memory.
// `validation`: the rows of validation.select, or null.
Result<ScoredRows> ScoreValidation(const plan::TrainPlan& plan, catalog::DataSource& source,
                                   const catalog::DatasetSpec& dataset,
                                   const catalog::DatasetSpec* validation, std::string_view weights,
                                   std::stop_token stop);

// Fits the calibration that plan.model.calibration asks for, stores it there, and replaces the
// metrics by those of the calibrated probabilities, where each row is calibrated by a fit to other
// rows.
void CalibrateModel(const ScoredRows& rows, plan::TrainPlan* plan,
                    std::vector<std::pair<std::string, double>>* metrics);

}  // namespace sluice::executor
