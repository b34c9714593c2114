#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "planner/column_spec.h"

namespace sluice::planner {

// A function of COLUMN and how to call it.
struct ColumnFunction {
  ColumnSpec::Kind kind;
  std::string_view name;
  std::string_view usage;  // for messages
  size_t least_arguments;
  size_t most_arguments;
};

std::span<const ColumnFunction> ColumnFunctions();
// Finds it in any case; nullptr if there is none.
const ColumnFunction* FindColumnFunction(std::string_view name);

}  // namespace sluice::planner
