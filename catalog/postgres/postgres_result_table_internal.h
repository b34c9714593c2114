#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/postgres/postgres_connection_internal.h"
#include "catalog/result_table_internal.h"

// Result tables in PostgreSQL: what exists, and whether it can take the rows. Every function runs
// inside the caller's transaction, and an error ends that.
namespace sluice::catalog {

// The record of result tables belongs to Sluice's own login, not to the role that the session has
// SET: the rest of the transaction runs as that login, and finds only the server's own functions.
inline constexpr std::string_view kAsLogin =
    "SET LOCAL SESSION AUTHORIZATION DEFAULT; SET LOCAL ROLE NONE;"
    " SET LOCAL search_path = pg_catalog, pg_temp";

// Queries the database itself, with the server's own functions and operators only: schemas of the
// session's search path may have others with the same names and better fitting types. Its settings
// and locks do not persist.
Result<PostgresResult> AskServer(PostgresConnection& connection, const std::string& sql,
                                 const std::vector<SqlParameter>& parameters);

struct PostgresTarget {
  TableName name;  // with its schema
  std::optional<FoundTable> found;
};

// The object of that name; a schema that does not exist is 3F000.
Result<PostgresTarget> FindPostgresTarget(PostgresConnection& connection, const TableName& name);

// The columns of a table that Sluice wrote, as FoundTable spells them.
Result<std::string> PostgresColumns(PostgresConnection& connection, const TableName& table);

// Marks a staging table that becomes `table`, with that name and its columns: a comment on its row
// type, which stays with the table but not with a copy of it. Only the table's owner can set it,
// whereas every role with rights on the record could claim there that another's table is ours. A
// record without the mark counts for nothing.
Status MarkPostgresTable(PostgresConnection& connection, const TableName& staging,
                         const TableName& table, const std::string& columns);

// If a refilled table has other rows than were written, 55000 with the names of its triggers and
// rules. To be called after the deferred ones have run.
Status CheckPostgresArrived(PostgresConnection& connection, const TableName& table,
                            int64_t written);

// Statements that move the rows of `staging` into the table, and one that tells whether it has any.
std::string FindOldRows(const TableName& table);
std::string DeleteOldRows(const TableName& table);
std::string InsertNewRows(const TableName& table, const TableName& staging, const Schema& schema,
                          ResultAction action);

// Checks for errors that would otherwise occur only at the end: rights, row-level security, foreign
// keys that would change rows of other tables, columns that do not fit, a publication without a
// replica identity; for a table that is replaced, also objects that it is part of or that depend on
// it: views, partitions, publications. `staging` has the columns of the new rows; without it only
// what does not depend on them is checked.
Status CheckPostgresAction(PostgresConnection& connection, const PostgresTarget& target,
                           ResultAction action, const Schema* schema,
                           const std::optional<TableName>& staging);

}  // namespace sluice::catalog
