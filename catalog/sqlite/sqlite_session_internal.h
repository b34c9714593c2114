#pragma once

#include <string_view>

#include "base/status.h"
#include "catalog/sql/table_name.h"
#include "catalog/sqlite/sqlite_connection_internal.h"

// Other connections than the session's own read for an extended statement, and nothing of a session
// can be replayed on them: what only it has, and the select needs, is refused.
namespace sluice::catalog {

// 25001 inside a transaction: other connections do not see what it has changed, and what we make
// would survive its ROLLBACK.
Status CheckNoSqliteTransaction(SqliteConnection& session);

// The same, and 0A000 for a PRAGMA that makes a select give something else.
Status CheckSqliteSession(SqliteConnection& session);

// Whether there is more than the main database: temporary tables and views, ATTACHed databases.
Result<bool> HasMoreThanMain(SqliteConnection& session);

// 0A000 when the select calls a function that answers for the session's own connection.
Status CheckNoSessionFunctions(SqliteConnection& session, std::string_view select);

// 0A000 for a result that would be written to an ATTACHed database, or that a temporary table or
// view of its name would hide from the session.
Status CheckResultInMain(SqliteConnection& session, const TableName& result);

// 0A000, by name, when SQLite would read any of that for the select. Runs nothing.
Status CheckOnlyMain(SqliteConnection& session, std::string_view select);

}  // namespace sluice::catalog
