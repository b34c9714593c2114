#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "catalog/postgres/postgres_database_internal.h"

namespace sluice::catalog {

// Drops the staging tables whose owner is gone.
Status DropAbandonedStages(PostgresConnection& connection);

// The table stays, whoever made it, as long as the connection's transaction lasts.
Status KeepStage(PostgresConnection& connection, const std::string& table);

// The rows of one SELECT in an unlogged table of schema sluice_stage, of the user's own, in the
// order the SELECT gave them. The table goes with the object; should the process die, the next one
// that stages drops it: the owner's session, and whoever reads it for the owner (KeepStage), shares
// an advisory lock on the table's number for as long as it lives.
class PostgresStage {
 public:
  // nullptr when the role may not create tables there.
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
