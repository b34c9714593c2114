#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/postgres/postgres_connection_internal.h"
#include "catalog/result_table_internal.h"

// Result tables in PostgreSQL: what is there, and whether it can take the rows. Every function runs
// inside the caller's transaction, and an error ends that.
namespace sluice::catalog {

// The record of result tables belongs to Sluice's own login, not to the role that the session has
// SET: what follows in the transaction is asked as that, and finds the server's own functions only.
inline constexpr std::string_view kAsLogin =
    "SET LOCAL SESSION AUTHORIZATION DEFAULT; SET LOCAL ROLE NONE;"
    " SET LOCAL search_path = pg_catalog, pg_temp";

// Asks about the database itself, with the server's own functions and operators only: in a schema
// of the session's search path others may have made some with the same names, whose types fit
// better. What it sets or locks does not stay.
Result<PostgresResult> AskServer(PostgresConnection& connection, const std::string& sql,
                                 const std::vector<SqlParameter>& parameters);

struct PostgresTarget {
  TableName name;  // with its schema
  std::optional<FoundTable> found;
};

// What stands under the name; a schema that does not exist is 3F000.
Result<PostgresTarget> FindPostgresTarget(PostgresConnection& connection, const TableName& name);

// The columns of a table of ours, as FoundTable spells them.
Result<std::string> PostgresColumns(PostgresConnection& connection, const TableName& table);

// Marks a staging table that becomes `table`, with that name and its columns: a comment on its row
// type, which goes with the table and not with a copy of it. Only the table's owner can set it;
// anybody with rights on the record could write there that a table of others is ours. A record
// without the mark counts for nothing.
Status MarkPostgresTable(PostgresConnection& connection, const TableName& staging,
                         const TableName& table, const std::string& columns);

// A refilled table that has other rows than were written is 55000 with the names of its triggers
// and rules. After the deferred ones have run.
Status CheckPostgresArrived(PostgresConnection& connection, const TableName& table,
                            int64_t written);

// Statements that bring the rows of `staging` into the table, and one that says whether it has any.
std::string FindOldRows(const TableName& table);
std::string DeleteOldRows(const TableName& table);
std::string InsertNewRows(const TableName& table, const TableName& staging, const Schema& schema,
                          ResultAction action);

// What would only fail at the end: rights, row-level security, foreign keys that would take rows of
// other tables along, columns that do not fit, a publication without a replica identity; of a table
// that is replaced whatever it is part of, or others are made of: views, partitions, publications.
// `staging` has the columns of the new rows; without it only what does not depend on them is looked
// at.
Status CheckPostgresAction(PostgresConnection& connection, const PostgresTarget& target,
                           ResultAction action, const Schema* schema,
                           const std::optional<TableName>& staging);

}  // namespace sluice::catalog
