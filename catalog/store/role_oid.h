#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "base/status.h"
#include "catalog/sql/sql_session.h"

namespace sluice::catalog {

// The OID of the role on whose behalf a catalog works, looked up once: the role that has the name
// at that time stays the caller, even if it is renamed or dropped later. Thread-safe.
class RoleOid {
 public:
  explicit RoleOid(std::string role) : role_(std::move(role)) {}

  const std::string& role() const { return role_; }
  // 42704: there is no role of that name.
  Result<int64_t> Find(SqlSession& session);

 private:
  const std::string role_;
  std::atomic<int64_t> oid_ = 0;  // 0: not known yet
};

// Whether limits concern that role: not superusers, nor the session's own login.
Result<bool> IsRoleLimited(SqlSession& session, int64_t oid);

}  // namespace sluice::catalog
