#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "planner/column_spec.h"

namespace sluice::planner {

// A function of COLUMN, as it is called.
struct ColumnFunction {
  ColumnSpec::Kind kind;
  std::string_view name;
  std::string_view usage;  // for messages
  size_t least_arguments;
  size_t most_arguments;
};

std::span<const ColumnFunction> ColumnFunctions();
// Any case; nullptr when there is none.
const ColumnFunction* FindColumnFunction(std::string_view name);

}  // namespace sluice::planner
