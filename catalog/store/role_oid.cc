#include "catalog/store/role_oid.h"

#include <fmt/core.h>

namespace sluice::catalog {

Result<int64_t> RoleOid::Find(SqlSession& session) {
  if (const int64_t known = oid_; known != 0) {
    return known;
  }
  ASSIGN_OR_RETURN(const SqlRows rows,
                   session.Query("SELECT r.oid::pg_catalog.int8 FROM pg_catalog.pg_roles AS r"
                                 " WHERE r.rolname = $1",
                                 {role_}));
  if (rows.empty()) {
    return NotFound(fmt::format("role \"{}\" does not exist", role_)).SqlState("42704");
  }
  oid_ = IntegerCell(rows[0].at(0));
  return int64_t{oid_};
}

Result<bool> IsRoleLimited(SqlSession& session, int64_t oid) {
  ASSIGN_OR_RETURN(const SqlRows rows,
                   session.Query("SELECT 1 FROM pg_catalog.pg_roles AS r WHERE r.oid = $1::oid AND"
                                 " (r.rolsuper OR r.rolname = session_user)",
                                 {oid}));
  return rows.empty();
}

}  // namespace sluice::catalog
