#pragma once

#include <string>

namespace sluice::plan {
class Plan;
}

namespace sluice::planner {

// A plan for a reader: rows, features with types and vocabulary, model with its parameter count,
// split, strategy and why, shards, fleet, estimated memory. Stable text (golden-tested).
std::string ExplainText(const plan::Plan& plan);
std::string ExplainJson(const plan::Plan& plan);

}  // namespace sluice::planner
