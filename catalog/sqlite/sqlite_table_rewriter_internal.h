#pragma once

#include <string>
#include <string_view>

#include "catalog/sqlite/sqlite_statement_pieces_internal.h"

namespace sluice::catalog {

// Rules for PostgreSQL's tables and rows in a select that SQLite expresses differently: functions
// that return several rows, VALUES whose columns have names, DISTINCT ON. Each takes the index of
// its first word, and leaves forms unchanged that it does not know.
class SqliteTableRewriter : public StatementPieces {
 public:
  using StatementPieces::StatementPieces;

 protected:
  // [(]information_schema._pg_expandarray(array)[).n], and unnest(array) together with
  // generate_subscripts(array, 1): a row for each element, which SQLite needs in the FROM clause.
  void Expanded(size_t at);
  // (VALUES ...) s(a, b): SQLite does not allow column names after a table alias.
  void NamedValues(size_t at);
  // generate_series(a, b) s(n), or s alone: a table of numbers.
  void Series(size_t at);
  // unnest(array) x: a table x with a column x; FROM unnest(array): a table with a column unnest.
  void Unnest(size_t at);
  // FROM f(x) s: a table s with one row and a column s.
  void FunctionAsTable(size_t at);
  // SELECT DISTINCT ON (x) ... ORDER BY: one row for each x, which SQLite expresses by GROUP BY.
  void DistinctOn(size_t at);

 private:
  // A table's alias, and not the word of what follows it.
  bool IsAlias(size_t at) const;
  void Subscripts(size_t at);
  // Adds the elements as one more table to the select around piece `at`.
  void AddExpanded(size_t at, int depth, const std::string& array);
};

}  // namespace sluice::catalog
