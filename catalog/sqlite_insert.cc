#include "catalog/sqlite_insert_internal.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

#include "catalog/sql_text.h"
#include "catalog/sqlite_types_internal.h"
#include "catalog/timestamp_text.h"

namespace sluice::catalog {
namespace {

// The declared type as the caller knows it, when it is one that a definition can hold as it is.
std::string DeclaredType(const ColumnInfo& column) {
  const bool plain = !column.database_type.empty() &&
                     std::all_of(column.database_type.begin(), column.database_type.end(),
                                 [](unsigned char c) {
                                   return std::isalnum(c) != 0 || c == ' ' || c == '_' ||
                                          c == '(' || c == ')' || c == ',';
                                 }) &&
                     TypeOfDeclaration(column.database_type) == column.type;
  return plain ? column.database_type : std::string(SqliteTypeName(column.type));
}

}  // namespace

std::string SqliteTableDefinition(const std::string& quoted_table, const Schema& schema) {
  std::string columns;
  for (const ColumnInfo& column : schema.columns) {
    columns += fmt::format("{}{} {}", columns.empty() ? "" : ", ", QuoteName(column.name),
                           DeclaredType(column));
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
  switch (column.type) {
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
