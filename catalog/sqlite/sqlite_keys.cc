#include <fmt/core.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "catalog/sql/sql_text.h"
#include "catalog/sqlite/sqlite_columns_internal.h"
#include "catalog/sqlite/sqlite_connection_internal.h"

namespace sluice::catalog {
namespace {

using TableKeys = std::map<std::string, ColumnKey>;

// The columns of a table that are unique on their own.
Result<TableKeys> KeysOf(SqliteConnection& connection, const std::string& table,
                         const std::string& schema) {
  const std::string place = fmt::format("{}, {}", QuoteText(table, Dialect::kSqlite),
                                        QuoteText(schema, Dialect::kSqlite));
  ASSIGN_OR_RETURN(
      const SqlRows rows,
      connection.Query(
          fmt::format(
              "SELECT name, 1 FROM pragma_table_info({0}) WHERE pk > 0"
              " AND (SELECT count(*) FROM pragma_table_info({0}) WHERE pk > 0) = 1"
              " UNION ALL SELECT i.name, 0 FROM pragma_index_list({0}) l,"
              " pragma_index_info(l.name, {1}) i WHERE l.\"unique\" AND NOT l.partial AND"
              " i.name IS NOT NULL AND (SELECT count(*) FROM pragma_index_info(l.name, {1})) = 1",
              place, QuoteText(schema, Dialect::kSqlite)),
          {}));
  TableKeys keys;
  for (const std::vector<Value>& row : rows) {
    const auto* name = std::get_if<std::string>(&row[0]);
    const auto* primary = std::get_if<int64_t>(&row[1]);
    if (name != nullptr && primary != nullptr) {
      keys.emplace(*name, *primary != 0 ? ColumnKey::kPrimary : ColumnKey::kUnique);
    }
  }
  return keys;
}

}  // namespace

Result<std::vector<ColumnKey>> SqliteKeys(SqliteConnection& connection, std::string_view select) {
  ASSIGN_OR_RETURN(const SqliteStatement statement, connection.PrepareSelect(select));
  const int count = sqlite3_column_count(statement.get());
  std::vector<ColumnKey> keys(static_cast<size_t>(count), ColumnKey::kNone);
  std::map<std::pair<std::string, std::string>, TableKeys> tables;
  for (int i = 0; i < count; ++i) {
    const char* schema = sqlite3_column_database_name(statement.get(), i);
    const char* table = sqlite3_column_table_name(statement.get(), i);
    const char* name = sqlite3_column_origin_name(statement.get(), i);
    if (schema == nullptr || table == nullptr || name == nullptr) {
      continue;
    }
    const auto [found, fresh] = tables.try_emplace({schema, table});
    if (fresh) {
      ASSIGN_OR_RETURN(found->second, KeysOf(connection, table, schema));
    }
    const auto key = found->second.find(name);
    if (key != found->second.end()) {
      keys[static_cast<size_t>(i)] = key->second;
    }
  }
  return keys;
}

}  // namespace sluice::catalog
