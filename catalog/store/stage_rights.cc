#include "catalog/store/stage_rights.h"

#include <fmt/core.h>

#include <string>

namespace sluice::catalog {
namespace {

// Two sessions that change the rights of one schema at the same moment: one of them is refused.
constexpr std::string_view kAtTheSameMoment = "XX000";
constexpr int kAttempts = 10;

}  // namespace

Status MakeStageSchema(SqlSession& session) {
  ASSIGN_OR_RETURN(const SqlRows may,
                   session.Query("SELECT 1 WHERE to_regnamespace('sluice_stage') IS NULL"
                                 " AND has_database_privilege(current_database(), 'CREATE')",
                                 {}));
  if (!may.empty()) {
    return session.Query("CREATE SCHEMA sluice_stage", {}).status();
  }
  ASSIGN_OR_RETURN(const bool is_for_public, IsStageForPublic(session));
  return is_for_public
             ? session.Query("REVOKE CREATE ON SCHEMA sluice_stage FROM PUBLIC", {}).status()
             : OkStatus();
}

Result<bool> IsStageForPublic(SqlSession& session) {
  ASSIGN_OR_RETURN(
      const SqlRows rows,
      session.Query("SELECT 1 FROM pg_namespace AS n CROSS JOIN aclexplode(n.nspacl) AS a WHERE"
                    " n.nspname = 'sluice_stage' AND pg_has_role(n.nspowner, 'USAGE') AND"
                    " a.grantee = 0 AND a.privilege_type = 'CREATE' AND NOT pg_is_in_recovery()",
                    {}));
  return !rows.empty();
}

Status AllowStaging(SqlSession& session, int64_t role) {
  Status given;
  for (int attempt = 0;
       attempt == 0 || (given.sqlstate() == kAtTheSameMoment && attempt < kAttempts); ++attempt) {
    ASSIGN_OR_RETURN(
        const SqlRows lacks,
        session.Query("SELECT quote_ident(r.rolname) FROM pg_roles AS r, pg_namespace AS n WHERE"
                      " r.oid = $1::oid AND n.nspname = 'sluice_stage' AND"
                      " pg_has_role(n.nspowner, 'USAGE') AND NOT pg_is_in_recovery() AND NOT"
                      " (has_schema_privilege(r.oid, n.oid, 'CREATE') AND"
                      " has_schema_privilege(r.oid, n.oid, 'USAGE'))",
                      {role}));
    if (lacks.empty()) {
      return OkStatus();
    }
    given = session
                .Query(fmt::format("GRANT USAGE, CREATE ON SCHEMA sluice_stage TO {}",
                                   TextCell(lacks[0][0])),
                       {})
                .status();
  }
  return given;
}

}  // namespace sluice::catalog
