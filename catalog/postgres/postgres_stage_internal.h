#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "catalog/postgres/postgres_database_internal.h"

namespace sluice::catalog {

// Drops the staging tables whose owner is gone.
Status DropAbandonedStages(PostgresConnection& connection);

// Keeps the table, whoever created it, as long as the connection's transaction lasts.
Status KeepStage(PostgresConnection& connection, const std::string& table);

// The rows of one SELECT in an unlogged table of schema sluice_stage, owned by the user, in the
// order in which the SELECT returned them; nobody else has a right on it. The table is dropped with
// the object; if the process dies, the next process that stages drops it. To show that a table is
// in use, the owner's session and its readers (KeepStage) lock it: unlike an advisory lock, no
// other role can take or hold up that lock.
class PostgresStage {
 public:
  // nullptr if the role may not create tables there.
  static Result<std::unique_ptr<PostgresStage>> Create(PostgresDatabase& database,
                                                       const std::string& select,
                                                       const Schema& schema);
  ~PostgresStage();
  PostgresStage(const PostgresStage&) = delete;
  PostgresStage& operator=(const PostgresStage&) = delete;

  const std::string& table() const { return table_; }  // sluice_stage.stage_...
  int64_t rows() const { return rows_; }

 private:
  PostgresStage(PostgresPool::Lease owner, std::string table)
      : owner_(std::move(owner)), table_(std::move(table)) {}
  PostgresPool::Lease owner_;
  const std::string table_;
  int64_t rows_ = 0;
};

}  // namespace sluice::catalog
