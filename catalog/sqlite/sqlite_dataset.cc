#include <fmt/core.h>

#include <cmath>
#include <utility>

#include "catalog/row_ranges_internal.h"
#include "catalog/sqlite/sqlite_columns_internal.h"
#include "catalog/sqlite/sqlite_cut_internal.h"
#include "catalog/sqlite/sqlite_database_internal.h"
#include "catalog/sqlite/sqlite_stage_internal.h"

namespace sluice::catalog {
namespace {

// A dataset that reads the database itself, under a snapshot.
class SnapshotDataset final : public Dataset {
 public:
  SnapshotDataset(SqliteDatabase& database, std::shared_ptr<SqliteSnapshot> snapshot,
                  DatasetSpec spec)
      : database_(database), snapshot_(std::move(snapshot)), spec_(std::move(spec)) {
    spec_.set_snapshot(database_.AddSnapshot(snapshot_));
  }
  ~SnapshotDataset() override {
    database_.RemoveSnapshot(spec_.snapshot());
    snapshot_->Close();
  }
  const DatasetSpec& spec() const override { return spec_; }
  Result<int64_t> CountRows() override {
    ASSIGN_OR_RETURN(SqlitePool::Lease reader, snapshot_->Take());
    Result<int64_t> rows =
        reader->QueryInteger(fmt::format("SELECT count(*) FROM (\n{}\n)", spec_.select()));
    snapshot_->GiveBack(std::move(reader));
    return rows;
  }

 private:
  SqliteDatabase& database_;
  std::shared_ptr<SqliteSnapshot> snapshot_;
  DatasetSpec spec_;
};

// A dataset whose rows were copied to a staging database, which is removed with it.
class StagedDataset final : public Dataset {
 public:
  StagedDataset(std::unique_ptr<SqliteStage> stage, DatasetSpec spec)
      : stage_(std::move(stage)), spec_(std::move(spec)) {}
  const DatasetSpec& spec() const override { return spec_; }
  Result<int64_t> CountRows() override { return spec_.estimated_rows(); }

 private:
  std::unique_ptr<SqliteStage> stage_;
  DatasetSpec spec_;
};

Result<std::unique_ptr<Dataset>> OpenStaged(SqliteDatabase& database, DatasetSpec spec,
                                            const DatasetOptions& options) {
  const SqliteLocation& main = database.location();
  if (main.in_memory() && options.many_processes) {
    return Status(Code::kFailedPrecondition,
                  "an in-memory SQLite database cannot be read by other processes")
        .Hint("use sqlite:PATH, or engine.strategy = 'local'");
  }
  ASSIGN_OR_RETURN(const StageRoom room, FindStageRoom(main));
  auto staged = SqliteStage::Create(main, spec.select(), static_cast<size_t>(spec.columns_size()),
                                    RowsPerRange(options), room, database.stop());
  if (!staged.ok()) {
    return staged.status().Because("cannot stage the rows of the select");
  }
  std::unique_ptr<SqliteStage> stage = std::move(staged).value();
  const std::string all = fmt::format("SELECT * FROM {}", SqliteStage::kTable);
  spec.set_select(all);
  spec.set_shard_select(all + " WHERE rowid >= {begin} AND rowid < {end}");
  spec.set_cut(DatasetSpec::ROWID);
  spec.set_staging_table(stage->suffix());
  spec.set_counted_rows(stage->rows());
  spec.set_fingerprint(fmt::format("staged {} rows", stage->rows()));
  PutShards(stage->shards(), options, &spec);
  spec.set_estimated_rows(stage->rows());
  return std::unique_ptr<Dataset>(new StagedDataset(std::move(stage), std::move(spec)));
}

// nullptr if the SELECT cannot be cut.
Result<std::unique_ptr<Dataset>> OpenCut(SqliteDatabase& database, DatasetSpec spec,
                                         const DatasetOptions& options) {
  ASSIGN_OR_RETURN(const auto snapshot, SqliteSnapshot::Open(database.readers(), database.writers(),
                                                             options.readers, database.stop()));
  ASSIGN_OR_RETURN(SqlitePool::Lease reader, snapshot->Take());
  ASSIGN_OR_RETURN(const auto cut,
                   FindRowidCut(*reader, spec.select(), static_cast<size_t>(spec.columns_size())));
  if (!cut.has_value()) {
    snapshot->GiveBack(std::move(reader));
    snapshot->Close();
    return std::unique_ptr<Dataset>();
  }
  ASSIGN_OR_RETURN(std::vector<ShardRange> ranges, CutRowids(*reader, *cut, RowsPerRange(options)));
  snapshot->GiveBack(std::move(reader));
  PutShards(std::move(ranges), options, &spec);
  spec.set_shard_select(cut->shard_select);
  spec.set_cut(DatasetSpec::ROWID);
  spec.set_fingerprint("read transactions of one process");
  return std::unique_ptr<Dataset>(new SnapshotDataset(database, snapshot, std::move(spec)));
}

}  // namespace

Result<std::unique_ptr<Dataset>> OpenSqliteDataset(SqliteDatabase& database, std::string_view url,
                                                   std::string_view select,
                                                   const DatasetOptions& options) {
  if (options.rows_per_shard <= 0) {
    return InvalidArgument(
        fmt::format("rows_per_shard is {}; expected at least 1", options.rows_per_shard));
  }
  DatasetSpec spec;
  spec.set_source_url(std::string(url));
  spec.set_select(std::string(TrimStatement(select, Dialect::kSqlite)));
  bool readers_hinder_writers = true;
  {
    ASSIGN_OR_RETURN(SqlitePool::Lease connection, database.TakeForStatement());
    ASSIGN_OR_RETURN(const Schema schema, DescribeSqliteSelect(*connection, spec.select()));
    PutSchema(schema, &spec);
    ASSIGN_OR_RETURN(const bool wal, connection->IsWriteAheadLog());
    // A file that cannot be written has no writers, and perhaps no room for a stage next to it.
    readers_hinder_writers = !wal && sqlite3_db_readonly(connection->handle(), "main") == 0;
  }
  if (!options.many_processes && !readers_hinder_writers) {
    ASSIGN_OR_RETURN(auto dataset, OpenCut(database, spec, options));
    if (dataset != nullptr) {
      return dataset;
    }
  }
  return OpenStaged(database, std::move(spec), options);
}

Result<CutEstimate> EstimateSqliteCut(SqliteDatabase& database, std::string_view select,
                                      const DatasetOptions& options) {
  ASSIGN_OR_RETURN(SqlitePool::Lease connection, database.TakeForStatement());
  const std::string_view trimmed = TrimStatement(select, Dialect::kSqlite);
  ASSIGN_OR_RETURN(const Schema schema, DescribeSqliteSelect(*connection, trimmed));
  ASSIGN_OR_RETURN(const auto cut, FindRowidCut(*connection, trimmed, schema.columns.size()));
  CutEstimate estimate;
  ASSIGN_OR_RETURN(const bool wal, connection->IsWriteAheadLog());
  estimate.method = cut.has_value() && wal && !options.many_processes ? "rowid ranges" : "staged";
  if (cut.has_value()) {
    ASSIGN_OR_RETURN(const auto density, ProbeRowids(*connection, *cut));
    estimate.estimated_rows = density.has_value() ? std::llround(density->rows()) : 0;
    const int64_t rows_per_shard = std::max<int64_t>(options.rows_per_shard, 1);
    estimate.shards =
        std::max<int64_t>(1, (estimate.estimated_rows + rows_per_shard - 1) / rows_per_shard);
  }
  return estimate;
}

}  // namespace sluice::catalog
