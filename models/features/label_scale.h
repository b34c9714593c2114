#pragma once

#include <vector>

#include "base/status.h"

namespace sluice::models {

class LabelPlan;

// A number is learnt as (y - mean) / scale.
struct LabelScale {
  double mean = 0;
  double scale = 1;  // never 0
};

// One for each number that the label holds; none for classes. Fails when the plan, which may come
// from a stored model, has other counts, or numbers that cannot scale.
Result<std::vector<LabelScale>> LabelScales(const LabelPlan& label);

// From the scale that a batch's labels have to the label's own: rows x label width, in place.
// `label` is one that LabelScales accepts.
void RestoreLabelScale(const LabelPlan& label, std::vector<float>* labels);

}  // namespace sluice::models
