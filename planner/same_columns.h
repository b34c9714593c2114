#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "parser/ast.h"

namespace sluice::plan {
class TrainPlan;
}

namespace sluice::planner {

// COLUMN clauses as text that can be parsed again: "COLUMN EMBEDDING(a, 8), b FOR target".
std::vector<std::string> PrintColumns(const std::vector<parser::ColumnClause>& clauses);

// The COLUMN clauses from which a stored model's features were made.
std::vector<std::string> TrainedColumns(const plan::TrainPlan& learnt);

// Whether the COLUMN clauses of a statement that continues from a model ask for the model's own
// features, in any order and spelling. An error says what differs.
Status CheckSameColumns(const std::vector<parser::ColumnClause>& clauses,
                        const plan::TrainPlan& learnt);

}  // namespace sluice::planner
