#pragma once

#include <atomic>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "catalog/role_limits.h"
#include "catalog/sql/sql_session.h"
#include "catalog/store/catalog_rights.h"

namespace sluice::catalog {

// The tables that hold models and jobs, and the records of result tables: schema `sluice` in
// PostgreSQL, a prefix in SQLite. Thread-safe.
class CatalogTables {
 public:
  explicit CatalogTables(Dialect dialect) : dialect_(dialect) {}

  Dialect dialect() const { return dialect_; }
  // What roles may store there; set before other threads use this object.
  void LimitRoles(const RoleLimits& limits) { limits_ = limits; }
  const RoleLimits& limits() const { return limits_; }
  // Inserts the real names into a statement: "{models}" becomes sluice.models or sluice_models.
  std::string Resolve(std::string_view sql) const;
  // The connections that follow may be to another database of the same name: what was found out of
  // it no longer counts.
  void Forget() { ++generation_; }
  // False while nothing has been stored yet. Creates nothing; upgrades tables of an earlier
  // version.
  Result<bool> Exist(SqlSession& session);
  // Creates missing tables, in a transaction of its own; safe when several processes do it at the
  // same time.
  Status Create(SqlSession& session);
  // The same for the table that records result tables, which databases of earlier versions lack.
  Result<bool> ResultTablesExist(SqlSession& session);
  Status CreateResultTables(SqlSession& session);
  // Lets the role, by its OID, stage rows in tables of its own (PostgreSQL), if this login may let
  // it; creates missing tables.
  Status AllowStaging(SqlSession& session, int64_t role) EXCLUDES(mutex_);
  // The same for the table of jobs' answers.
  Result<bool> AnswersExist(SqlSession& session);

  Result<bool> HasTable(SqlSession& session, std::string_view table);

 private:
  // Whether everything that this version adds exists.
  Result<bool> IsCurrent(SqlSession& session);
  static Result<Owners> OwnersNow(SqlSession& session);
  Status CreateAll(SqlSession& session, const std::vector<std::string_view>& definitions);
  Status MakeSchema(SqlSession& session);
  // 42501: another role could add to what a superuser would do there.
  Status CheckOwners(SqlSession& session);
  // 42P06: the schema was made for something else.
  static Status CheckNoOtherTables(SqlSession& session);
  Status GiveRights(SqlSession& session);

  const Dialect dialect_;
  RoleLimits limits_;
  std::atomic<uint64_t> generation_ = 1;
  std::atomic<uint64_t> exist_in_ = 0;  // the generation in which they were found
  Mutex mutex_;
  std::set<int64_t> stagers_ GUARDED_BY(mutex_);  // who may stage
  uint64_t stagers_in_ GUARDED_BY(mutex_) = 0;    // the generation in which they may
};

}  // namespace sluice::catalog
