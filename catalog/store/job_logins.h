#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace sluice::catalog {

class CatalogTables;
class SqlSession;

// Logins of jobs (PostgreSQL): roles with which the processes of one job write the catalog, so that
// they need no password of Sluice's own login. A job's login reads and writes the rows of its job,
// stores versions of its model, and sees the models that the job's owner sees; it owns nothing and
// is a member of `sluice_jobs` only. Row-level security keeps it from everything else. It can lock
// the tables that it deletes from.

struct JobLogin {
  std::string role, password;
};
// A new one, which is yet to be made.
Result<JobLogin> NewJobLogin();
// Whether a role with that name is a job's.
bool IsOfJob(std::string_view role);

// Whether this login owns the tables, and the database has the functions of JobLoginFunctions, a
// superuser's, for it.
Result<bool> CanMakeJobLogins(CatalogTables& tables, SqlSession& session);
// Makes the role `login` for the job, in the place of an earlier one. `verifier`:
// SCRAM-SHA-256$..., of its password.
Status MakeJobLogin(CatalogTables& tables, SqlSession& session, int64_t job,
                    const std::string& login, const std::string& verifier);
// Drops those whose jobs have ended ten minutes ago: until then a master may still read how. Where
// nothing is in its way, makes what the first login needs.
Status DropJobLogins(CatalogTables& tables, SqlSession& session);

// Drops the functions by which policies know a job's login, and those policies: MakeJobLogin makes
// them again, with its own login's rights.
std::string DropJobLoginRights();

// Whether the login is a job's, as an SQL expression.
std::string IsJobLogin();

// What a superuser runs in a database so that its gateway's login, `role`, may make and drop logins
// of jobs, and no other roles: the role `sluice_jobs`, and two functions.
std::string JobLoginFunctions(std::string_view role);

}  // namespace sluice::catalog
