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

// A plan for a reader: rows, features with types and vocabulary, model with its parameter count,
// split, strategy and why, shards, fleet, estimated memory. Stable text (golden-tested).
std::string ExplainText(const plan::Plan& plan);
std::string ExplainJson(const plan::Plan& plan);
// An attribute's value: "true", "0.5", "[64, 32]".
std::string DescribeAttribute(const models::Attribute& attribute);

// "left out: id (the primary key), note (NULL in every row); ...", or "" when nothing is.
std::string DescribeLeftOut(const plan::TrainPlan& plan);

// Whether an attribute says something about this model; others hold for every one of its kind.
bool IsWorthTelling(const models::Attribute& attribute, const models::ModelSpec& model);

// Which rows judge.
std::string DescribeValidation(const plan::TrainPlan& plan);
// For how long it is trained, and what ends that sooner: lines with their names.
std::vector<std::pair<std::string, std::string>> DescribeSchedule(const plan::TrainPlan& plan);

// How probabilities are calibrated, and, once that is done, what came of it.
std::string DescribeCalibration(const models::Calibration& calibration);

// How a model of two classes decides, or "".
std::string DescribeThreshold(const plan::TrainPlan& plan);

}  // namespace sluice::planner
