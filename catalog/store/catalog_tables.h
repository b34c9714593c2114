#pragma once

#include <atomic>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/sql/sql_session.h"
#include "catalog/store/catalog_rights.h"

namespace sluice::catalog {

// The tables in which models and jobs live, and result tables are recorded: schema `sluice` in
// PostgreSQL, a prefix in SQLite. Thread-safe.
class CatalogTables {
 public:
  explicit CatalogTables(Dialect dialect) : dialect_(dialect) {}

  Dialect dialect() const { return dialect_; }
  // Puts the real names into a statement: "{models}" becomes sluice.models or sluice_models.
  std::string Resolve(std::string_view sql) const;
  // False while nothing has been stored yet. Creates nothing; tables of an earlier version are
  // brought up to date.
  Result<bool> Exist(SqlSession& session);
  // Makes the tables when they do not exist, in a transaction of its own; safe when several
  // processes do it at the same moment.
  Status Create(SqlSession& session);
  // The same for the table in which result tables are recorded; databases of earlier versions have
  // all but this one.
  Result<bool> ResultTablesExist(SqlSession& session);
  Status CreateResultTables(SqlSession& session);
  // And for the one of what jobs have answered.
  Result<bool> AnswersExist(SqlSession& session);

 private:
  Result<bool> HasTable(SqlSession& session, std::string_view table);
  // Whether everything is there that this version adds.
  Result<bool> IsCurrent(SqlSession& session);
  static Result<Owners> OwnersNow(SqlSession& session);
  Status CreateAll(SqlSession& session, const std::vector<std::string_view>& definitions);
  Status MakeSchema(SqlSession& session);
  // 42501: what a superuser would do there, somebody else could add to.
  Status CheckOwners(SqlSession& session);
  Status GiveRights(SqlSession& session);
  Status MakeStageSchema(SqlSession& session);

  const Dialect dialect_;
  std::atomic<bool> exist_ = false;
};

}  // namespace sluice::catalog
