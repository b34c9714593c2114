#pragma once

#include <string>
#include <string_view>

namespace sluice::server {

// The queries behind \d and \dt. The dialect is the database's that the shell talks to.
enum class SqlDialect { kPostgres, kSqlite };

// Tables and views. `pattern`: may contain * and ?, and a schema before a dot; "": those that a
// statement can name without a schema, except for Sluice's own. `only_tables`: no views.
std::string ListTables(SqlDialect dialect, std::string_view pattern, bool only_tables);

// One row if the table or view exists, with its name as written in a statement.
std::string FindTable(SqlDialect dialect, std::string_view name);
// Its columns; its indexes.
std::string ListColumns(SqlDialect dialect, std::string_view name);
std::string ListIndexes(SqlDialect dialect, std::string_view name);

// For completion: names in the first column.
std::string TableNames(SqlDialect dialect);
// Columns of all tables: table, column.
std::string ColumnNames(SqlDialect dialect);

}  // namespace sluice::server
