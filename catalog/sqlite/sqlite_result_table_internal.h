#pragma once

#include <optional>
#include <string>
#include <vector>

#include "catalog/result_table_internal.h"
#include "catalog/sqlite/sqlite_connection_internal.h"

// Result tables in SQLite: what is there, and whether it can take the rows.
namespace sluice::catalog {

struct SqliteTarget {
  TableName name;  // with its schema, and spelled as the database does
  std::optional<FoundTable> found;
};

// What stands under the name; a schema that does not exist is 3F000. Reads all rows of a table that
// looks like one of ours.
Result<SqliteTarget> FindSqliteTarget(SqliteConnection& connection, const TableName& name);
// The table that was just written, for the record.
Result<FoundTable> FindWrittenSqliteTable(SqliteConnection& connection, const TableName& name);

struct SqliteColumn {
  std::string name;
  std::string type;  // as it was declared
  bool generated = false;
};
Result<std::vector<SqliteColumn>> ListSqliteColumns(SqliteConnection& connection,
                                                    const TableName& table);
// The columns of a table, as FoundTable spells them.
Result<std::string> SqliteColumns(SqliteConnection& connection, const TableName& table);

// How many rows, and a number that other rows do not have, whatever order they are in.
Result<std::string> DigestSqliteRows(SqliteConnection& connection, const TableName& table);

// What would only fail at the end, change rows of other tables, or break what names the table.
Status CheckSqliteAction(SqliteConnection& connection, const SqliteTarget& target,
                         ResultAction action, const Schema& schema);
// A cell of the staging table that the column it is appended to would change (22003).
Status CheckAppendedCells(SqliteConnection& connection, const TableName& table,
                          const TableName& staging, const Schema& schema);
// A refilled table that has other rows than were written is 55000 with the names of its triggers.
Status CheckSqliteArrived(SqliteConnection& connection, const TableName& table,
                          const TableName& staging);

// A name for a staging table beside a result table, and its definition. The definition says in a
// comment whose it is: it stays when the staging table becomes the result, and tells that from any
// other table of its name.
TableName NewSqliteStaging(const TableName& beside);
std::string SqliteStagingDefinition(const TableName& staging, const Schema& schema);
// Drops the staging tables of processes that are gone; nothing without such a comment.
Status DropAbandonedStaging(SqliteConnection& connection, const std::string& in_schema);

}  // namespace sluice::catalog
