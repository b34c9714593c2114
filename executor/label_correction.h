#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "executor/calibrate.h"

namespace sluice::executor {

// Whether the model's predictions come back from a curve, with least squared errors on it: they
// then lie where the middle of the labels is, below the mean that least squared errors ask for.
bool WantsCorrection(const plan::TrainPlan& plan);

// The factor of the predictions that leaves least squared errors; 1 where too few rows tell.
double FindCorrection(std::span<const float> predictions, std::span<const float> labels,
                      std::span<const float> weights);

// Stores the factor with the plan's label, and replaces the metrics by those of what is then
// predicted. `rows` in the label's own scale, as the model scores them without a correction.
void CorrectPredictions(ScoredRows rows, plan::TrainPlan* plan,
                        std::vector<std::pair<std::string, double>>* metrics);

}  // namespace sluice::executor
