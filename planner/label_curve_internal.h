#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "models/model.pb.h"
#include "planner/attributes.h"
#include "planner/derive.h"

// The scale on which a numeric label is learnt. Only .cc files include this.
namespace sluice::planner {

// The numbers in the sample's label column.
std::vector<double> LabelSample(const std::vector<std::vector<Value>>& sample, size_t column);

// Applies train.label_scale if it is given: the label's curve, and mean and scale on it. An error
// if the label is not a number.
Status BindLabelCurve(const AttributeSet& attributes, const std::vector<double>& sample,
                      models::LabelPlan* label);

// For a training that continues from a model: an error if it has learnt a root or a logarithm and a
// label is negative.
Status CheckLearntScale(const models::LabelPlan& learnt, const std::vector<double>& sample,
                        Span span);
// A warning if the labels are far from those that the model has learnt, in level or unit; else "".
std::string OtherLevel(const models::LabelPlan& learnt, const std::vector<double>& sample);

// The label on other scales that are worth trying: none, unless a few of its numbers are far above
// the others, and none is below 0.
std::vector<models::LabelPlan> OtherScales(const std::vector<double>& sample,
                                           const models::LabelPlan& label);

}  // namespace sluice::planner
