#pragma once

#include <string>
#include <string_view>

#include "base/row_batch.h"
#include "base/status.h"
#include "parser/ast.h"
#include "planner/column_index.h"

namespace sluice::catalog {
class DataSource;
}

namespace sluice::planner {

// A statement's SELECT with the columns that the database reports for it.
struct BoundSelect {
  std::string text;
  Span span;
  Schema schema;
  ColumnIndex columns;
};

// Asks the database to describe the SELECT. The database's error is mapped to its place in the
// script; two columns of one name, and a SELECT without columns, are errors.
Result<BoundSelect> BindSelect(const parser::Select& select, catalog::DataSource& source);

// The same for SQL inside a string (validation.select): its errors point at the string.
Result<BoundSelect> BindSelectText(std::string_view select, Span place,
                                   catalog::DataSource& source);

// The name as a quoted identifier, which both dialects read.
std::string QuoteIdentifier(std::string_view name);

}  // namespace sluice::planner
