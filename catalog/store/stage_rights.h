#pragma once

#include <cstdint>

#include "base/status.h"
#include "catalog/sql/sql_session.h"

// Who may create tables in schema sluice_stage of PostgreSQL, where users stage rows that have to
// be read twice, in tables of their own. Not in the catalog's schema: tables created there by users
// could be mistaken for Sluice's.
namespace sluice::catalog {

// Makes the schema if there is none and the login may; takes it from PUBLIC, whom earlier versions
// gave it. Part of a transaction of `session`.
Status MakeStageSchema(SqlSession& session);
// Whether PUBLIC may create there, and the login may change that.
Result<bool> IsStageForPublic(SqlSession& session);
// Gives a role the right to create tables there, if it has none and the login may give it.
Status AllowStaging(SqlSession& session, int64_t role);

}  // namespace sluice::catalog
