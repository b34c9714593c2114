#pragma once

#include <string>

#include "base/status.h"
#include "catalog/data_source.h"
#include "planner/attributes.h"

namespace sluice::models {
class LabelPlan;
class ModelSpec;
}  // namespace sluice::models

// How a classifier decides between its classes, and how its mistakes are weighed.
namespace sluice::planner {

// predict.threshold: "f1", "cost:5", "auto", or a number between 0 and 1 as text; "" if not given.
// An error unless the model decides between two classes.
Result<std::string> ReadThreshold(const AttributeSet& attributes, const models::LabelPlan& label);

// Reads class_weight: 'balanced', or 'yes: 5, no: 1', into LabelPlan::class_weights.
Status FillClassWeights(const AttributeSet& attributes, const catalog::ColumnStatistics& statistics,
                        int64_t rows, models::LabelPlan* label);

// Puts train.calibrate into the model. An error if the label is a number.
Status ReadCalibration(const AttributeSet& attributes, models::ModelSpec* model);

// A warning if there are many classes with few rows each; else "".
std::string WarnOfFewRows(const models::LabelPlan& label, int64_t rows);

// A warning if classes differ only in case or in blanks around them; else "".
std::string WarnOfSpellings(const models::LabelPlan& label);

// What a prediction without features would reach: "always 'no': accuracy 0.883".
std::string DescribeBaseline(const models::LabelPlan& label,
                             const catalog::ColumnStatistics& statistics);

}  // namespace sluice::planner
