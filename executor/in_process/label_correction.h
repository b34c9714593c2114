#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "executor/in_process/calibrate.h"

namespace sluice::executor {

// Whether predictions are transformed back from a curve on which least squared errors were fitted:
// they then approximate the median of the labels, below the mean that minimises squared errors.
bool WantsCorrection(const plan::TrainPlan& plan);

// The factor for the predictions that minimises squared errors; 1 if there are too few rows.
double FindCorrection(std::span<const double> predictions, std::span<const double> labels,
                      std::span<const float> weights);

// Stores the factor in the plan's label, and replaces the metrics by those of the corrected
// predictions. `rows`: in the label's own scale, as the model scores them without a correction.
void CorrectPredictions(ScoredRows rows, plan::TrainPlan* plan,
                        std::vector<std::pair<std::string, double>>* metrics);

}  // namespace sluice::executor
