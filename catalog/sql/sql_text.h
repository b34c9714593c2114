#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "catalog/sql/table_name.h"

namespace sluice::catalog {

// How quotes and comments are read: the two databases differ in E'..', $$..$$, [..], `..`.
enum class Dialect : int { kPostgres = 1, kSqlite = 2 };

// A token of a statement. Comments and white space are left out.
struct SqlToken {
  enum class Kind : int { kWord, kQuotedName, kString, kNumber, kSymbol };
  Kind kind = Kind::kSymbol;
  size_t begin = 0;  // half-open byte range
  size_t end = 0;
  int depth = 0;  // of parentheses and brackets around it; they have the depth outside
};

// Never fails: what is not closed reaches to the end, and the database will say so.
std::vector<SqlToken> TokenizeSql(std::string_view sql, Dialect dialect);

// The statement without white space and semicolons around it (comments stay).
std::string_view TrimStatement(std::string_view sql, Dialect dialect);

std::string LowerAscii(std::string_view text);

// 0 to 15; -1: `c` is no hexadecimal digit.
int HexDigit(char c);

// "name", with quotes inside doubled. Both databases take it.
std::string QuoteName(std::string_view name);
// 'text', for places where a value cannot be bound. Both databases take it.
std::string QuoteText(std::string_view text, Dialect dialect);

// [schema.]table as it stands in a statement: quotes are taken off, and PostgreSQL folds what is
// not quoted to lower case.
Result<TableName> ParseTableName(std::string_view text, Dialect dialect);

}  // namespace sluice::catalog
