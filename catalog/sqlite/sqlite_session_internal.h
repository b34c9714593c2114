#pragma once

#include <string_view>

#include "base/status.h"
#include "catalog/sql/table_name.h"
#include "catalog/sqlite/sqlite_connection_internal.h"

// An extended statement reads on other connections than the session's own, and no session state can
// be replayed there: state that the select needs and only the session has is refused.
namespace sluice::catalog {

// 25001 inside a transaction: other connections do not see its changes, and what we create would
// survive its ROLLBACK.
Status CheckNoSqliteTransaction(SqliteConnection& session);

// The same, and 0A000 for a PRAGMA that changes the result of a select.
Status CheckSqliteSession(SqliteConnection& session);

// Whether there is more than the main database: temporary tables and views, ATTACHed databases.
Result<bool> HasMoreThanMain(SqliteConnection& session);

// 0A000 if the select calls a function whose result depends on the session's own connection.
Status CheckNoSessionFunctions(SqliteConnection& session, std::string_view select);

// 0A000 for a result that would be written to an ATTACHed database, or that a temporary table or
// view of its name would hide from the session.
Status CheckResultInMain(SqliteConnection& session, const TableName& result);

// 0A000, by name, if SQLite would read any of that for the select. Runs nothing.
Status CheckOnlyMain(SqliteConnection& session, std::string_view select);

}  // namespace sluice::catalog
