#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/dataset.pb.h"
#include "catalog/sqlite/sqlite_database_internal.h"

namespace sluice::catalog {

// The free room in the folder of a stage, and how much of it a stage may take.
struct StageRoom {
  std::string folder;
  int64_t free_bytes = 0;
  int64_t kept_free_bytes = 0;
};
Result<StageRoom> FindStageRoom(const SqliteLocation& database);

// Removes the stages next to the database whose owner has ended.
void RemoveAbandonedStages(const SqliteLocation& database);

// A database of its own for the rows of one SELECT, in a file next to their database with the same
// access rights; in memory if that is in memory. The file is removed with the object; if the
// process dies, the next process that stages removes it: the owner holds a lock on the file while
// it is alive.
class SqliteStage {
 public:
  // Copies the rows of `select`, from one state of the database, into a table without declared
  // types, which keeps every cell unchanged. 53100 if they do not fit into `room`, 57014 when it is
  // stopped.
  static Result<std::unique_ptr<SqliteStage>> Create(const SqliteLocation& database,
                                                     std::string_view select, size_t columns,
                                                     int64_t rows_per_shard, const StageRoom& room,
                                                     std::stop_token stop);
  ~SqliteStage();
  SqliteStage(const SqliteStage&) = delete;
  SqliteStage& operator=(const SqliteStage&) = delete;

  // The suffix of its name after the database's.
  const std::string& suffix() const { return suffix_; }
  int64_t rows() const { return rows_; }
  // Ranges of its rowids. If the select could be cut in its own table, they have the rows of that
  // cut, in its order, so that a model does not depend on whether its rows were staged.
  const std::vector<ShardRange>& shards() const { return shards_; }

  static constexpr std::string_view kTable = "rows";

 private:
  SqliteStage(SqliteLocation location, std::string suffix)
      : location_(std::move(location)), suffix_(std::move(suffix)) {}
  Status MakeFile(const SqliteLocation& database);
  Status Fill(const SqliteLocation& database, std::string_view select, size_t columns,
              int64_t rows_per_shard, const StageRoom& room, std::stop_token stop);
  Status Copy(SqliteConnection& connection, std::string_view select, size_t columns,
              int64_t rows_per_shard);

  const SqliteLocation location_;
  const std::string suffix_;
  int file_ = -1;                             // locked
  std::unique_ptr<SqliteConnection> keeper_;  // keeps a stage in memory alive
  int64_t rows_ = 0;
  std::vector<ShardRange> shards_;
};

}  // namespace sluice::catalog
