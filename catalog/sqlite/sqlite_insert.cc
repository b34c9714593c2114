#include "base/letter_case.h"
#include "catalog/sqlite/sqlite_insert_internal.h"

#include <fmt/core.h>

#include <cctype>

#include "catalog/sql/sql_text.h"
#include "catalog/sql/timestamp_text.h"
#include "catalog/sqlite/sqlite_types_internal.h"

namespace sluice::catalog {
namespace {

// True for a type that the grammar accepts without quotes: words that are not keywords, optionally
// followed by numbers in parentheses.
bool IsPlainType(std::string_view type) {
  const auto letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; };
  const auto digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  const std::string_view words = type.substr(0, type.find('('));
  for (size_t i = 0; i < words.size();) {
    size_t end = i;
    while (end < words.size() && (letter(words[end]) || digit(words[end]) || words[end] == '_')) {
      ++end;
    }
    if (end == i || digit(words[i]) ||
        sqlite3_keyword_check(words.data() + i, static_cast<int>(end - i)) != 0) {
      return false;
    }
    i = words.find_first_not_of(' ', end);
  }
  if (words.size() == type.size()) {
    return !words.empty();
  }
  const std::string_view numbers = type.substr(words.size() + 1);
  const size_t comma = numbers.find(',');
  return !words.empty() && numbers.ends_with(')') && digit(numbers.front()) &&
         numbers.find_first_not_of("0123456789, ") == numbers.size() - 1 &&
         (comma == std::string_view::npos || numbers.find(',', comma + 1) == numbers.npos) &&
         digit(numbers[numbers.size() - 2]);
}

// " TYPE COLLATE name", or a part of that: no type for a column that keeps every cell unchanged.
std::string Declaration(const ColumnInfo& column) {
  if (!column.declaration.has_value()) {
    const bool known =
        IsPlainType(column.database_type) && TypeOfDeclaration(column.database_type) == column.type;
    return fmt::format(" {}", known ? column.database_type : SqliteTypeName(column.type));
  }
  std::string_view type = *column.declaration;
  std::string_view collation;
  for (const std::string_view known : {" COLLATE nocase", " COLLATE rtrim"}) {
    if (type.ends_with(known)) {
      collation = known;
      type.remove_suffix(known.size());
    }
  }
  // "ANY" keeps every cell in a STRICT table only; in others it means NUMERIC.
  if (type.empty() || LowerAscii(type) == "any") {
    return std::string(collation);
  }
  return fmt::format(" {}{}", IsPlainType(type) ? std::string(type) : QuoteName(type), collation);
}

}  // namespace

std::string SqliteTableDefinition(const std::string& quoted_table, const Schema& schema) {
  std::string columns;
  for (const ColumnInfo& column : schema.columns) {
    columns += fmt::format("{}{}{}", columns.empty() ? "" : ", ", QuoteName(column.name),
                           Declaration(column));
  }
  return fmt::format("CREATE TABLE {} ({})", quoted_table, columns);
}

std::string Insertion(const std::string& quoted_table, const Schema& schema) {
  std::string columns;
  std::string places;
  for (const ColumnInfo& column : schema.columns) {
    columns += (columns.empty() ? "" : ", ") + QuoteName(column.name);
    places += places.empty() ? "?" : ", ?";
  }
  return fmt::format("INSERT INTO {} ({}) VALUES ({})", quoted_table, columns, places);
}

int BindCell(sqlite3_stmt* statement, int place, const RowBatch::Column& column, size_t row) {
  if (column.null[row] != 0) {
    return sqlite3_bind_null(statement, place);
  }
  switch (column.TypeAt(row)) {
    case DataType::kBool:
    case DataType::kInt64:
      return sqlite3_bind_int64(statement, place, column.int64s[row]);
    case DataType::kDouble:
      return sqlite3_bind_double(statement, place, column.doubles[row]);
    case DataType::kTimestamp: {
      const std::string text = TimestampLiteral(column.int64s[row]);
      return sqlite3_bind_text64(statement, place, text.data(), text.size(), SQLITE_TRANSIENT,
                                 SQLITE_UTF8);
    }
    case DataType::kText: {
      const std::string_view text = column.texts[row];
      return sqlite3_bind_text64(statement, place, text.empty() ? "" : text.data(), text.size(),
                                 SQLITE_STATIC, SQLITE_UTF8);
    }
    case DataType::kBytes: {
      const std::string_view bytes = column.texts[row];
      return sqlite3_bind_blob64(statement, place, bytes.empty() ? "" : bytes.data(), bytes.size(),
                                 SQLITE_STATIC);
    }
  }
  return SQLITE_MISUSE;
}

}  // namespace sluice::catalog
