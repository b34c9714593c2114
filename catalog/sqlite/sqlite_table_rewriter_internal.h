#pragma once

#include <string>
#include <string_view>

#include "catalog/sqlite/sqlite_statement_pieces_internal.h"

namespace sluice::catalog {

// The rules for what PostgreSQL has for tables and rows in a select, and SQLite says otherwise:
// functions that return several rows, VALUES whose columns have names, DISTINCT ON. Each takes the
// number of its first word, and leaves alone what is written as it does not know it.
class SqliteTableRewriter : public StatementPieces {
 public:
  using StatementPieces::StatementPieces;

 protected:
  // [(]information_schema._pg_expandarray(array)[).n], and unnest(array) beside
  // generate_subscripts(array, 1): a row for each element, which SQLite has behind FROM.
  void Expanded(size_t at);
  // (VALUES ...) s(a, b): SQLite has no names for columns behind a table's own.
  void NamedValues(size_t at);
  // generate_series(a, b) s(n), or s alone: a table of numbers.
  void Series(size_t at);
  // unnest(array) x: a table x with a column x.
  void Unnest(size_t at);
  // FROM f(x) s: a table s with one row and a column s.
  void FunctionAsTable(size_t at);
  // SELECT DISTINCT ON (x) ... ORDER BY: one row for each x, which SQLite has behind GROUP BY.
  void DistinctOn(size_t at);

 private:
  void Subscripts(size_t at);
  // The elements, as one more table of the select around piece `at`.
  void AddExpanded(size_t at, int depth, const std::string& array);
};

}  // namespace sluice::catalog
