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

// What the folder of a stage has, and how much of that a stage may take.
struct StageRoom {
  std::string folder;
  int64_t free_bytes = 0;
  int64_t kept_free_bytes = 0;
};
Result<StageRoom> FindStageRoom(const SqliteLocation& database);

// Removes the stages beside the database whose owner is gone.
void RemoveAbandonedStages(const SqliteLocation& database);

// A database of its own for the rows of one SELECT, beside the database that they come from and as
// readable as that; in memory, where that is. The file goes with the object; should the process
// die, the next that stages removes it: the owner holds a lock on the file for as long as it lives.
class SqliteStage {
 public:
  // Copies the rows of `select`, from one state of the database, into a table without declared
  // types, which keeps every cell as it is. 53100 when they do not fit into `room`, 57014 when it
  // is stopped.
  static Result<std::unique_ptr<SqliteStage>> Create(const SqliteLocation& database,
                                                     std::string_view select, size_t columns,
                                                     int64_t rows_per_shard, const StageRoom& room,
                                                     std::stop_token stop);
  ~SqliteStage();
  SqliteStage(const SqliteStage&) = delete;
  SqliteStage& operator=(const SqliteStage&) = delete;

  // What its name has behind the database's.
  const std::string& suffix() const { return suffix_; }
  int64_t rows() const { return rows_; }
  // Ranges of its rowids. Where the select can be cut in its own table, they have the rows of that
  // cut, in its order: a model does not depend on whether its rows were staged.
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
  std::unique_ptr<SqliteConnection> keeper_;  // of a stage in memory
  int64_t rows_ = 0;
  std::vector<ShardRange> shards_;
};

}  // namespace sluice::catalog
