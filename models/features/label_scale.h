#pragma once

#include <vector>

#include "base/status.h"

namespace sluice::models {

class LabelPlan;

// Large numbers are drawn together where a few of them would else be most of the loss.
enum class LabelCurve { kStraight, kRoot, kLogarithm };

// A number is learnt as (curve(y) - mean) / scale.
struct LabelScale {
  double mean = 0;
  double scale = 1;  // never 0
  LabelCurve curve = LabelCurve::kStraight;
  double correction = 1;  // of predictions

  double Learnt(double number) const;
  double Restored(double learnt) const;  // the other way
  double Predicted(double learnt) const { return Restored(learnt) * correction; }
};

// With the sign of `number`.
double Bend(LabelCurve curve, double number);

// One for each number that the label holds; none for classes. Fails when the plan, which may come
// from a stored model, has other counts, or numbers that cannot scale.
Result<std::vector<LabelScale>> LabelScales(const LabelPlan& label);

// From the scale that a batch's labels have to the label's own: rows x label width, in place.
// `label` is one that LabelScales accepts.
void RestoreLabelScale(const LabelPlan& label, std::vector<float>* labels);

}  // namespace sluice::models
