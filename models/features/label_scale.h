#pragma once

#include <string_view>
#include <vector>

#include "base/status.h"

namespace sluice::models {

class LabelPlan;

// Curves that compress large numbers, so that a few of them do not dominate the loss.
enum class LabelCurve { kStraight, kRoot, kLogarithm };

// A number is learnt as (curve(y) - mean) / scale.
struct LabelScale {
  double mean = 0;
  double scale = 1;  // never 0
  LabelCurve curve = LabelCurve::kStraight;
  double correction = 1;  // factor for predictions

  double Transformed(double number) const;
  double Restored(double learnt) const;  // The inverse.
  double Predicted(double learnt) const { return Restored(learnt) * correction; }
};

// Keeps the sign of `number`.
double Bend(LabelCurve curve, double number);

// Whether an objective of boosted trees is the squared error, which learns a label on any scale.
bool LearnsSquares(std::string_view objective);
// Whether it depends on distances from the label only, so that any number may be 0.
bool LearnsDistances(std::string_view objective);
// Whether all metrics of a list, "rmse, mae", are errors in the label's unit.
bool ScaleWithLabel(std::string_view metrics);
// Whether they depend on distances from the label only.
bool MeasureDistances(std::string_view metrics);

// One for each number in the label; none for classes. Fails if the plan, which may come from a
// stored model, has other counts, or scales that are not usable.
Result<std::vector<LabelScale>> LabelScales(const LabelPlan& label);

}  // namespace sluice::models
