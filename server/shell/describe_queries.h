#pragma once

#include <string>
#include <string_view>

namespace sluice::server {

// The statements behind \d and \dt: which database the shell talks to.
enum class SqlDialect { kPostgres, kSqlite };

// Tables and views. `pattern`: with * and ?, and maybe a schema before a dot; "": those that a
// statement sees without a schema, but for Sluice's own. `only_tables`: no views.
std::string ListTables(SqlDialect dialect, std::string_view pattern, bool only_tables);

// One row where there is such a table or view, as a statement would write its name.
std::string FindTable(SqlDialect dialect, std::string_view name);
// Its columns; its indexes.
std::string ListColumns(SqlDialect dialect, std::string_view name);
std::string ListIndexes(SqlDialect dialect, std::string_view name);

// For completion: names in the first column.
std::string TableNames(SqlDialect dialect);
// Columns of all tables: table, column.
std::string ColumnNames(SqlDialect dialect);

}  // namespace sluice::server
