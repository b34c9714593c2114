#pragma once

#include <string>

#include "base/status.h"
#include "catalog/data_source.h"
#include "planner/attributes.h"

namespace sluice::models {
class LabelPlan;
class ModelSpec;
}  // namespace sluice::models

// How a classifier decides between its classes, and what its mistakes weigh.
namespace sluice::planner {

// predict.threshold: "f1", "cost:5", "auto", or a number between 0 and 1 as text; "" when not
// given. An error where the model does not decide between two classes.
Result<std::string> ReadThreshold(const AttributeSet& attributes, const models::LabelPlan& label);

// class_weight: 'balanced', or 'yes: 5, no: 1', into LabelPlan::class_weights.
Status FillClassWeights(const AttributeSet& attributes, const catalog::ColumnStatistics& statistics,
                        int64_t rows, models::LabelPlan* label);

// Puts train.calibrate into the model. An error where the label is a number.
Status ReadCalibration(const AttributeSet& attributes, models::ModelSpec* model);

// A warning where there are many classes, and few rows of each; else "".
std::string WarnOfFewRows(const models::LabelPlan& label, int64_t rows);

// What a guess that knows no feature would reach: "always 'no': accuracy 0.883".
std::string DescribeBaseline(const models::LabelPlan& label,
                             const catalog::ColumnStatistics& statistics);

}  // namespace sluice::planner
