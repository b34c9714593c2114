#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "parser/ast.h"

namespace sluice::plan {
class TrainPlan;
}

namespace sluice::planner {

// COLUMN clauses as text, each to be parsed again: "COLUMN EMBEDDING(a, 8), b FOR target".
std::vector<std::string> PrintColumns(const std::vector<parser::ColumnClause>& clauses);

// The COLUMN clauses that a stored model's features come from.
std::vector<std::string> LearntColumns(const plan::TrainPlan& learnt);

// Whether a statement that continues from a model asks, by COLUMN, for the features that the model
// has: in any order, spelt in any way. An error says what differs.
Status CheckSameColumns(const std::vector<parser::ColumnClause>& clauses,
                        const plan::TrainPlan& learnt);

}  // namespace sluice::planner
