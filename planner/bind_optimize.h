#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "parser/ast.h"

namespace sluice::catalog {
class DataSource;
}

namespace sluice::planner {

// TO MAXIMIZE / TO MINIMIZE with its attributes read.
struct BoundOptimize {
  std::vector<std::string> variables;  // the columns for whose combinations values are sought
  std::string result_column;           // the value's column in the result table
  std::string variable_type;           // "Binary", "NonNegativeIntegers" ...
};

// Reports every mistake at once: variables or var_type missing, an unknown type, functions other
// than SUM, operators that no solver supports (<>), an unknown solver.
Result<BoundOptimize> BindOptimize(const parser::OptimizeStatement& statement);

// Those, and checks that need the database: whether the SELECT runs, and has every column that is
// named, except the value that is sought.
Status CheckOptimize(const parser::OptimizeStatement& statement, catalog::DataSource& source);

}  // namespace sluice::planner
