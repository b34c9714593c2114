#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/sql/sql_text.h"

namespace sluice::catalog {

// SELECT list FROM one table [alias] [WHERE condition], the only shape that can be cut by ranges of
// the table's own row addresses. The texts are the user's own.
struct SingleTableSelect {
  std::string list;
  std::string table;      // as written, [schema.]table
  std::string alias;      // as written; "" when none
  std::string condition;  // without WHERE; "" when none

  // What a column of the table is called inside the statement: "t.ctid".
  std::string Qualified(std::string_view column) const;
  // The statement with `extra` added to its condition (the condition keeps its meaning, in
  // parentheses) and `table_suffix` behind the table and its alias.
  std::string With(std::string_view extra, std::string_view table_suffix = "") const;
};

// nullopt when the statement has another shape: joins, grouping, DISTINCT, LIMIT, ORDER BY, UNION
// and so on. What the tokens cannot tell (aggregates, views, set-returning functions) shows in the
// database's query plan.
std::optional<SingleTableSelect> FindSingleTable(std::string_view select, Dialect dialect);

// Lower-case names of everything that is called like a function, and words such as
// current_timestamp that are calls without parentheses.
std::vector<std::string> CalledFunctions(std::string_view select, Dialect dialect);

}  // namespace sluice::catalog
