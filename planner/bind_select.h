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

// The SELECT of a statement after the database has described it.
struct BoundSelect {
  std::string text;
  Span span;
  Schema schema;
  ColumnIndex columns;
};

// Describes the SELECT. The database's own error points into the script; two columns of one name,
// and a SELECT without columns, are errors.
Result<BoundSelect> BindSelect(const parser::Select& select, catalog::DataSource& source);

// The same for SQL that stands in a string (validation.select): its errors point at the string.
Result<BoundSelect> BindSelectText(std::string_view select, Span place,
                                   catalog::DataSource& source);

// An identifier of the database, quoted as both dialects read it.
std::string QuoteIdentifier(std::string_view name);

}  // namespace sluice::planner
