#include <fmt/core.h>

#include <chrono>
#include <unordered_map>
#include <utility>
#include <vector>

#include "catalog/column_description.h"
#include "catalog/row_ranges_internal.h"
#include "catalog/sqlite/sqlite_database_internal.h"
#include "catalog/sqlite/sqlite_types_internal.h"

namespace sluice::catalog {
namespace {

// The bounds of a range in a statement that is run for one range after another. No conflict is
// possible: a select has no parameters.
constexpr char kBeginParameter[] = ":sluice_begin";
constexpr char kEndParameter[] = ":sluice_end";

class SqliteRowStream final : public RowStream {
 public:
  SqliteRowStream(SqliteConnection& connection, SqliteStatement statement, Schema schema,
                  size_t decoded, CopiedColumns::Purpose purpose, RowRanges ranges,
                  std::vector<size_t> sources = {})
      : connection_(connection),
        statement_(std::move(statement)),
        ranges_(std::move(ranges)),
        schema_(std::move(schema)),
        decoder_(schema_, decoded, purpose, std::move(sources)) {
    if (!ranges_.empty()) {
      BindNextRange();
    }
  }

  Status Next(size_t max_rows, RowBatch* batch) override {
    const auto begin = std::chrono::steady_clock::now();
    Status status = Fill(max_rows, batch);
    waited_seconds_ +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return status;
  }
  double waited_seconds() const override { return waited_seconds_; }

 private:
  Status Fill(size_t max_rows, RowBatch* batch) {
    decoder_.Begin(batch, max_rows);
    while (!at_end_ && batch->rows < max_rows && decoder_.bytes() < kBatchBytes) {
      const int code = sqlite3_step(statement_.get());
      if (code == SQLITE_DONE) {
        if (next_range_ < ranges_.size()) {
          BindNextRange();
        } else {
          at_end_ = true;  // another step would run the statement again
        }
      } else if (code == SQLITE_ROW) {
        RETURN_IF_ERROR(decoder_.Decode(statement_.get(), ++row_number_, batch));
      } else {
        return connection_.LastError("");
      }
    }
    decoder_.Finish(batch);
    return OkStatus();
  }

  void BindNextRange() {
    sqlite3_stmt* statement = statement_.get();
    const auto [begin, end] = ranges_[next_range_++];
    sqlite3_reset(statement);
    sqlite3_bind_int64(statement, sqlite3_bind_parameter_index(statement, kBeginParameter), begin);
    sqlite3_bind_int64(statement, sqlite3_bind_parameter_index(statement, kEndParameter), end);
  }

  SqliteConnection& connection_;
  SqliteStatement statement_;
  const RowRanges ranges_;
  size_t next_range_ = 0;
  const Schema schema_;
  SqliteRowDecoder decoder_;
  int64_t row_number_ = 0;
  double waited_seconds_ = 0;
  bool at_end_ = false;
};

// Reads shards from a snapshot of this process or from a staging database.
class SqliteShardReader final : public ShardReader {
 public:
  SqliteShardReader(DatasetSpec spec, std::shared_ptr<SqliteSnapshot> snapshot,
                    SqlitePool::Lease leased)
      : spec_(std::move(spec)),
        schema_(SchemaOf(spec_)),
        snapshot_(std::move(snapshot)),
        leased_(std::move(leased)) {}
  SqliteShardReader(DatasetSpec spec, std::unique_ptr<SqliteConnection> owned)
      : spec_(std::move(spec)), schema_(SchemaOf(spec_)), owned_(std::move(owned)) {}
  ~SqliteShardReader() override {
    if (snapshot_ != nullptr) {
      snapshot_->GiveBack(std::move(leased_));
    }
  }

  Result<std::unique_ptr<RowStream>> Read(const ShardRange& shard,
                                          const std::vector<size_t>& columns,
                                          const CopiedColumns& copied) override {
    std::vector<size_t> all = columns;
    all.insert(all.end(), copied.columns.begin(), copied.columns.end());
    ASSIGN_OR_RETURN(Schema schema, ChosenSchema(schema_, all));
    // Each is read once: a statement of SQLite has at most 2,000 columns, as a table has.
    std::vector<size_t> read, sources;
    std::unordered_map<size_t, size_t> places;
    for (const size_t column : all) {
      const auto [place, added] = places.try_emplace(column, read.size());
      if (added) {
        read.push_back(column);
      }
      sources.push_back(place->second);
    }
    for (size_t i = columns.size(); i < all.size(); ++i) {
      schema.columns[i].type = ShownType(schema.columns[i]);
    }
    const std::string sql = fmt::format(
        "WITH s({}) AS (\n{}\n) SELECT {} FROM s", NumberedColumns(schema_.columns.size()),
        WithBounds(spec_.shard_select(), kBeginParameter, kEndParameter),
        read.empty() ? std::string("NULL") : ChosenColumns(read));
    SqliteConnection& connection = snapshot_ != nullptr ? *leased_ : *owned_;
    ASSIGN_OR_RETURN(SqliteStatement statement, connection.Prepare(sql));
    return std::unique_ptr<RowStream>(
        new SqliteRowStream(connection, std::move(statement), std::move(schema), columns.size(),
                            copied.purpose, RangesOf(shard), std::move(sources)));
  }

 private:
  const DatasetSpec spec_;
  const Schema schema_;
  std::shared_ptr<SqliteSnapshot> snapshot_;
  SqlitePool::Lease leased_;
  std::unique_ptr<SqliteConnection> owned_;
};

}  // namespace

Result<std::unique_ptr<RowStream>> OpenSqliteStream(SqliteConnection& connection,
                                                    std::string_view sql, Schema schema,
                                                    size_t decoded,
                                                    CopiedColumns::Purpose purpose) {
  ASSIGN_OR_RETURN(SqliteStatement statement, connection.Prepare(sql));
  return std::unique_ptr<RowStream>(new SqliteRowStream(connection, std::move(statement),
                                                        std::move(schema), decoded, purpose, {}));
}

Result<std::unique_ptr<ShardReader>> OpenSqliteReader(SqliteDatabase& database,
                                                      const DatasetSpec& spec) {
  if (!spec.staging_table().empty()) {
    const SqliteLocation stage = LocateBeside(database.location(), spec.staging_table());
    ASSIGN_OR_RETURN(auto connection, SqliteConnection::Open(
                                          Immutable(stage),
                                          stage.in_memory() ? SqliteConnection::Access::kReadWrite
                                                            : SqliteConnection::Access::kReadOnly));
    connection->HearStop(database.stop());
    return std::unique_ptr<ShardReader>(new SqliteShardReader(spec, std::move(connection)));
  }
  std::shared_ptr<SqliteSnapshot> snapshot = database.FindSnapshot(spec.snapshot());
  if (snapshot == nullptr) {
    return Status(Code::kFailedPrecondition,
                  "the dataset is closed, or belongs to another process: SQLite cannot share a "
                  "snapshot between processes (DatasetOptions::many_processes stages it)");
  }
  ASSIGN_OR_RETURN(SqlitePool::Lease reader, snapshot->Take());
  return std::unique_ptr<ShardReader>(
      new SqliteShardReader(spec, std::move(snapshot), std::move(reader)));
}

}  // namespace sluice::catalog
