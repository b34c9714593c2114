#pragma once

#include "planner/column_spec.h"

namespace sluice::planner {

struct ColumnFunction;

// Reads a call of a column function, whose arguments may be calls (ReadColumn). Errors quote the
// call and show the right form.
Result<ColumnSpec> ReadColumnCall(const parser::Expression& call, const ColumnFunction& function);

}  // namespace sluice::planner
