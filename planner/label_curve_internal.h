#pragma once

#include <vector>

#include "base/status.h"
#include "models/model.pb.h"
#include "planner/attributes.h"
#include "planner/derive.h"

// On which scale a number is learnt. Only .cc files include this.
namespace sluice::planner {

// The label's column in the rows that were looked at: those that are numbers.
std::vector<double> LabelSample(const std::vector<std::vector<Value>>& sample, size_t column);

// Follows train.label_scale, where it is given: the label's curve, and mean and scale on it. An
// error where the label is no number.
Status BindLabelCurve(const AttributeSet& attributes, const std::vector<double>& sample,
                      models::LabelPlan* label);

// The label on other scales that are worth a trial: none, unless a few of its numbers are far above
// the others, and no number is below 0.
std::vector<models::LabelPlan> OtherScales(const std::vector<double>& sample,
                                           const models::LabelPlan& label);

}  // namespace sluice::planner
