#pragma once

#include <string>

namespace sluice::models {
class Attribute;
}

namespace sluice::plan {
class Plan;
}

namespace sluice::planner {

// A plan for a reader: rows, features with types and vocabulary, model with its parameter count,
// split, strategy and why, shards, fleet, estimated memory. Stable text (golden-tested).
std::string ExplainText(const plan::Plan& plan);
std::string ExplainJson(const plan::Plan& plan);
// An attribute's value: "true", "0.5", "[64, 32]".
std::string DescribeAttribute(const models::Attribute& attribute);

}  // namespace sluice::planner
