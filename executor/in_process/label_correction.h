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

// The factor for the predictions, which approximate medians, with which they approximate means; 1
// if there are too few rows. Where the judged rows are drawn from all by chance, it is the one with
// the least squared errors. Others, such as the latest, may be on another level, which says nothing
// of the rows before: then it follows from how far the labels spread around the predictions on the
// label's curve, each row compared with the one before it in the table. Sources: N. Duan, Smearing
// estimate: a nonparametric retransformation method, 1983; J. von Neumann and others, The mean
// square successive difference, 1941.
double FindCorrection(const plan::TrainPlan& plan, std::span<const double> predictions,
                      std::span<const double> labels, std::span<const float> weights);

// Stores the factor in the plan's label, and replaces the metrics by those of the corrected
// predictions. `rows`: in the label's own scale, as the model scores them without a correction.
void CorrectPredictions(ScoredRows rows, plan::TrainPlan* plan,
                        std::vector<std::pair<std::string, double>>* metrics);

}  // namespace sluice::executor
