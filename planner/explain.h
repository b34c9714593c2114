#pragma once

#include <string>
#include <utility>
#include <vector>

namespace sluice::models {
class Attribute;
class Calibration;
class ModelSpec;
}  // namespace sluice::models

namespace sluice::plan {
class Plan;
class TrainPlan;
}  // namespace sluice::plan

namespace sluice::planner {

// A plan as text for people: rows, features with types and vocabulary, model with its parameter
// count, split, strategy and its reason, shards, fleet, estimated memory. Stable text
// (golden-tested).
std::string ExplainText(const plan::Plan& plan);
std::string ExplainJson(const plan::Plan& plan);
// An attribute's value: "true", "0.5", "[64, 32]".
std::string DescribeAttribute(const models::Attribute& attribute);

// "left out: id (the primary key), note (NULL in every row); ...", or "" if there are none.
std::string DescribeLeftOut(const plan::TrainPlan& plan);

// Whether an attribute is specific to this model; others are the same for every model of its type.
bool IsWorthShowing(const models::Attribute& attribute, const models::ModelSpec& model);

// The rows that the model is evaluated on.
std::string DescribeValidation(const plan::TrainPlan& plan);
// The length of the training, and what may end it sooner: lines with their names.
std::vector<std::pair<std::string, std::string>> DescribeSchedule(const plan::TrainPlan& plan);

// How probabilities are calibrated, and, after training, the result.
std::string DescribeCalibration(const models::Calibration& calibration);

// How a model with two classes decides, or "".
std::string DescribeThreshold(const plan::TrainPlan& plan);

}  // namespace sluice::planner
