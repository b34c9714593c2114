#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "catalog/sql/table_name.h"

namespace sluice::catalog {

// Dialects differ in quotes and comments: E'..', $$..$$, [..], `..`.
enum class Dialect : int { kPostgres = 1, kSqlite = 2 };

// A token of a statement. Comments and white space are left out.
struct SqlToken {
  enum class Kind : int { kWord, kQuotedName, kString, kNumber, kSymbol };
  Kind kind = Kind::kSymbol;
  size_t begin = 0;  // half-open byte range
  size_t end = 0;
  int depth = 0;  // of surrounding parentheses and brackets; these have the outer depth
};

// Never fails: an unclosed token extends to the end, and the database will report it.
std::vector<SqlToken> TokenizeSql(std::string_view sql, Dialect dialect);

// What a statement does, in upper case: its first word, or the one behind the queries of a WITH.
std::string VerbOf(std::string_view sql, Dialect dialect);

// The statement without surrounding white space and semicolons (comments stay).
std::string_view TrimStatement(std::string_view sql, Dialect dialect);

// 0 to 15; -1: `c` is not a hexadecimal digit.
int HexDigit(char c);

// "name", with inner quotes doubled. Both databases accept it.
std::string QuoteName(std::string_view name);
// 'text', for places where a value cannot be bound. Both databases accept it.
std::string QuoteText(std::string_view text, Dialect dialect);

// [schema.]table as written in a statement: removes quotes, and folds unquoted parts to lower case
// for PostgreSQL.
Result<TableName> ParseTableName(std::string_view text, Dialect dialect);

}  // namespace sluice::catalog
