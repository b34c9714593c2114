#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/sql/sql_text.h"

namespace sluice::catalog {

// SELECT list FROM one table [alias] [WHERE condition], the only form that can be cut into ranges
// of the table's row addresses. The texts are the user's own.
struct SingleTableSelect {
  std::string list;
  std::string table;      // as written, [schema.]table
  std::string alias;      // as written; "" when none
  std::string condition;  // without WHERE; "" when none

  // The qualified name of the table's column inside the statement: "t.ctid".
  std::string Qualified(std::string_view column) const;
  // The statement with `extra` added to its condition (which keeps its meaning, in parentheses) and
  // `table_suffix` after the table and its alias.
  std::string With(std::string_view extra, std::string_view table_suffix = "") const;
};

// nullopt if the statement has another form: joins, grouping, DISTINCT, LIMIT, ORDER BY, UNION and
// so on. What the tokens do not show (aggregates, views, set-returning functions) is visible in the
// database's query plan.
std::optional<SingleTableSelect> FindSingleTable(std::string_view select, Dialect dialect);

// Lower-case names that are called like functions, and words such as current_timestamp that are
// calls without parentheses.
std::vector<std::string> CalledFunctions(std::string_view select, Dialect dialect);

}  // namespace sluice::catalog
