#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "parser/ast.h"

namespace sluice::planner {

// TO MAXIMIZE / TO MINIMIZE after its attributes are read.
struct BoundOptimize {
  std::vector<std::string> variables;  // the columns over which a value is sought
  std::string result_column;           // of the value in the result table
  std::string variable_type;           // "Binary", "NonNegativeIntegers" ...
};

// Every mistake at once: variables or var_type missing, a type that does not exist, operators that
// no solver knows (<>).
Result<BoundOptimize> BindOptimize(const parser::OptimizeStatement& statement);

}  // namespace sluice::planner
