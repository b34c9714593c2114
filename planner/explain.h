#pragma once

#include <string>

namespace sluice::models {
class Attribute;
}

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

// How a model of two classes decides, or "".
std::string DescribeThreshold(const plan::TrainPlan& plan);

}  // namespace sluice::planner
