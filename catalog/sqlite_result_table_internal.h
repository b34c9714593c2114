#pragma once

#include <optional>
#include <string>

#include "catalog/result_table_internal.h"
#include "catalog/sqlite_connection_internal.h"

// Result tables in SQLite: what is there, and whether it can take the rows.
namespace sluice::catalog {

struct SqliteTarget {
  TableName name;  // with its schema, and spelled as the database does
  std::optional<FoundTable> found;
};

// What stands under the name; a schema that does not exist is 3F000.
Result<SqliteTarget> FindSqliteTarget(SqliteConnection& connection, const TableName& name);

// The columns of a table, as FoundTable spells them.
Result<std::string> SqliteColumns(SqliteConnection& connection, const TableName& table);

// What would only fail at the end, or change rows of other tables.
Status CheckSqliteAction(SqliteConnection& connection, const SqliteTarget& target,
                         ResultAction action, const Schema& schema);

// A name for a staging table beside a result table, and its definition. The definition says in a
// comment whose it is: it stays when the staging table becomes the result, and tells that from any
// other table of its name.
TableName NewSqliteStaging(const TableName& beside);
std::string SqliteStagingDefinition(const TableName& staging, const Schema& schema);
// Drops the staging tables of processes that are gone; nothing without such a comment.
Status DropAbandonedStaging(SqliteConnection& connection, const std::string& in_schema);

}  // namespace sluice::catalog
