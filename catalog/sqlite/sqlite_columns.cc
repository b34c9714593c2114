#include <fmt/core.h>
#include <sqlite3.h>

#include <optional>
#include <string>
#include <vector>

#include "base/letter_case.h"
#include "catalog/sqlite/sqlite_columns_internal.h"
#include "catalog/sqlite/sqlite_connection_internal.h"
#include "catalog/sqlite/sqlite_types_internal.h"

namespace sluice::catalog {
namespace {

// Enough cells to determine a column's type, few enough to cost nothing.
constexpr int kTypeSampleRows = 100;

// " COLLATE name", if the column belongs to a table that compares its texts by another collation;
// collations defined by a program are unknown here.
std::string CollationOf(SqliteConnection& connection, sqlite3_stmt* statement, int column) {
  const char* schema = sqlite3_column_database_name(statement, column);
  const char* table = sqlite3_column_table_name(statement, column);
  const char* name = sqlite3_column_origin_name(statement, column);
  const char* collation = nullptr;
  if (table == nullptr || name == nullptr ||
      sqlite3_table_column_metadata(connection.handle(), schema, table, name, nullptr, &collation,
                                    nullptr, nullptr, nullptr) != SQLITE_OK ||
      collation == nullptr) {
    return "";
  }
  const std::string known = LowerAscii(collation);
  return known == "nocase" || known == "rtrim" ? fmt::format(" COLLATE {}", known) : "";
}

// What CREATE TABLE AS declares a copy of dates, times, truth values and decimal numbers.
bool IsOfACopy(const ColumnInfo& column) {
  return LowerAscii(column.database_type) == "num";
}

}  // namespace

Result<Schema> DescribeSqliteSelect(SqliteConnection& connection, std::string_view select) {
  ASSIGN_OR_RETURN(const SqliteStatement statement, connection.PrepareSelect(select));
  const int count = sqlite3_column_count(statement.get());
  if (count == 0) {
    return InvalidArgument("expected a SELECT: this statement returns no rows");
  }
  if (sqlite3_stmt_readonly(statement.get()) == 0) {
    return InvalidArgument("expected a SELECT: this statement changes the database");
  }
  Schema schema;
  std::vector<int> open;  // columns whose type depends on their cells
  for (int i = 0; i < count; ++i) {
    const char* name = sqlite3_column_name(statement.get(), i);
    const char* declared = sqlite3_column_decltype(statement.get(), i);
    ColumnInfo& column = schema.columns.emplace_back();
    column.name = name == nullptr ? "" : name;
    column.database_type = declared == nullptr ? "" : declared;
    column.declaration = column.database_type + CollationOf(connection, statement.get(), i);
    const std::optional<DataType> type = TypeOfDeclaration(column.database_type);
    column.type = type.value_or(column.type);
    if (!type.has_value() || IsOfACopy(column)) {
      open.push_back(i);
    }
  }
  if (open.empty()) {
    return schema;
  }
  std::vector<CellTypes> types(open.size());
  for (int row = 0; row < kTypeSampleRows; ++row) {
    const int code = sqlite3_step(statement.get());
    if (code == SQLITE_DONE) {
      break;
    }
    if (code != SQLITE_ROW) {
      return connection.LastError(select);
    }
    for (size_t i = 0; i < open.size(); ++i) {
      types[i].Add(sqlite3_column_type(statement.get(), open[i]));
    }
  }
  for (size_t i = 0; i < open.size(); ++i) {
    ColumnInfo& column = schema.columns[static_cast<size_t>(open[i])];
    if (!IsOfACopy(column) || (types[i].seen() && !types[i].numbers())) {
      column.type = types[i].type();
    }
  }
  return schema;
}

}  // namespace sluice::catalog
