#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "parser/ast.h"

namespace sluice::catalog {
class DataSource;
}

namespace sluice::planner {

// TO MAXIMIZE / TO MINIMIZE after its attributes are read.
struct BoundOptimize {
  std::vector<std::string> variables;  // the columns over which a value is sought
  std::string result_column;           // of the value in the result table
  std::string variable_type;           // "Binary", "NonNegativeIntegers" ...
};

// Every mistake at once: variables or var_type missing, a type that does not exist, functions but
// SUM, operators that no solver knows (<>), an unknown solver.
Result<BoundOptimize> BindOptimize(const parser::OptimizeStatement& statement);

// These, and what only the database knows: whether the SELECT runs, and has every column that is
// named but the value that is sought.
Status CheckOptimize(const parser::OptimizeStatement& statement, catalog::DataSource& source);

}  // namespace sluice::planner
