#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "catalog/connection_pool.h"
#include "catalog/data_source.h"
#include "catalog/sqlite/sqlite_connection_internal.h"
#include "catalog/sqlite/sqlite_place_internal.h"
#include "catalog/store/catalog_tables.h"

namespace sluice::catalog {

using SqlitePool = ConnectionPool<SqliteConnection>;

// Read-only connections that all see one and the same state of the database, each inside a read
// transaction of its own. In WAL mode they hinder no writer. Thread-safe.
//
// How they come to see the same state: SQLite's PRAGMA data_version changes for a connection
// whenever another one has committed. Readers begin their transactions between two looks at it from
// a connection of ours; when both looks agree, nothing was committed in between. Where commits
// follow each other too fast for that, a connection of `writers` holds them up for the moment. More
// readers can join as long as the number is still the same.
class SqliteSnapshot {
 public:
  // `stop` ends what runs on its readers, and the waiting for one.
  static Result<std::shared_ptr<SqliteSnapshot>> Open(SqlitePool& readers, SqlitePool& writers,
                                                      std::stop_token stop);

  // A reader for the caller alone; waits a while when all are taken and none can be added.
  Result<SqlitePool::Lease> Take();
  void GiveBack(SqlitePool::Lease reader);
  // Ends the transactions of the readers that nobody uses, and of the others when they come back.
  void Close();

 private:
  SqliteSnapshot(SqlitePool& pool, SqlitePool::Lease watcher, std::stop_token stop)
      : pool_(pool), stop_(std::move(stop)), watcher_(std::move(watcher)) {}
  Result<SqlitePool::Lease> NewReader();
  // Begins a transaction on each reader, all at one state of the database; false, with none begun,
  // when somebody committed meanwhile.
  Result<bool> TryBegin(std::vector<SqlitePool::Lease>* readers) REQUIRES(mutex_);
  // One more reader of the same state; an empty lease when the database has moved on.
  Result<SqlitePool::Lease> TryAdd() REQUIRES(mutex_);

  SqlitePool& pool_;
  const std::stop_token stop_;
  Mutex mutex_;
  std::condition_variable_any returned_;
  SqlitePool::Lease watcher_ GUARDED_BY(mutex_);
  int64_t version_ GUARDED_BY(mutex_) = 0;
  std::vector<SqlitePool::Lease> free_ GUARDED_BY(mutex_);
  bool closed_ GUARDED_BY(mutex_) = false;
};

// The database that a SQLite data source stands for: its connections and its open snapshots.
// Thread-safe.
class SqliteDatabase {
 public:
  explicit SqliteDatabase(SqliteLocation location);

  const SqliteLocation& location() const { return location_; }
  SqlitePool& writers() { return writers_; }

  // What ends the statement that the session runs.
  void HearStop(std::stop_token stop);
  std::stop_token stop();
  // For the text of an extended statement, and what is written for it: hears the statement's stop.
  // The first one turns the database into one with a write-ahead log; a plain statement changes no
  // more than it says.
  Result<SqlitePool::Lease> TakeForStatement() { return TakeForStatement(stop()); }
  // The same with a stop of its own.
  Result<SqlitePool::Lease> TakeForStatement(const std::stop_token& stop);
  SqlitePool& readers() { return readers_; }

  // As SqlDatabase::OpenAnew.
  Result<std::unique_ptr<SqlSession>> OpenAnew(const std::stop_token& stop);

  // Snapshots are found again by the name in DatasetSpec.snapshot.
  std::string AddSnapshot(std::shared_ptr<SqliteSnapshot> snapshot);
  std::shared_ptr<SqliteSnapshot> FindSnapshot(const std::string& name);
  void RemoveSnapshot(const std::string& name);

 private:
  // A connection, as long as the path leads to the file that was opened first.
  Result<std::unique_ptr<SqliteConnection>> Connect(SqliteConnection::Access access);

  SqliteLocation location_;
  SqlitePlace place_{location_};
  SqlitePool writers_;
  SqlitePool readers_;
  Mutex mutex_;
  std::stop_token stop_ GUARDED_BY(mutex_);
  bool asked_for_log_ GUARDED_BY(mutex_) = false;
  int64_t next_snapshot_ GUARDED_BY(mutex_) = 1;
  std::map<std::string, std::shared_ptr<SqliteSnapshot>> snapshots_ GUARDED_BY(mutex_);
};

// Where "PATH" or ":memory:" lies. Every call for ":memory:" is a new, empty database.
SqliteLocation LocateSqlite(std::string_view path);
// A file beside the database, or a second in-memory database.
SqliteLocation LocateBeside(const SqliteLocation& location, std::string_view suffix);
// The same place, opened without locks because nobody will write to it any more.
SqliteLocation Immutable(const SqliteLocation& location);

// The rows of `sql`, whose columns are those of `schema`; from column `decoded` on they are copied.
// `connection` outlives the stream.
Result<std::unique_ptr<RowStream>> OpenSqliteStream(SqliteConnection& connection,
                                                    std::string_view sql, Schema schema,
                                                    size_t decoded, CopiedColumns::Purpose purpose);

Result<std::unique_ptr<Dataset>> OpenSqliteDataset(SqliteDatabase& database, std::string_view url,
                                                   std::string_view select,
                                                   const DatasetOptions& options);
Result<CutEstimate> EstimateSqliteCut(SqliteDatabase& database, std::string_view select,
                                      const DatasetOptions& options);
Result<std::unique_ptr<ShardReader>> OpenSqliteReader(SqliteDatabase& database,
                                                      const DatasetSpec& spec);
Result<SelectStatistics> SqliteStatistics(SqliteDatabase& database, std::string_view select,
                                          const Schema& schema, const StatisticsOptions& options);
Result<ResultPlan> PlanSqliteResult(SqliteDatabase& database, const ResultTable& table,
                                    const Schema* columns);
Result<std::unique_ptr<TableWriter>> OpenSqliteWriter(SqliteDatabase& database,
                                                      CatalogTables& tables,
                                                      const ResultTable& table,
                                                      const Schema& schema);
Result<std::unique_ptr<TableLoader>> OpenSqliteLoader(SqliteDatabase& database,
                                                      const TableName& table, const Schema& columns,
                                                      bool make);
Status AppendSqliteRows(SqliteDatabase& database, const TableName& table, const Schema& schema,
                        const RowBatch& batch);
// Runs one statement on `connection`.
Result<ExecuteResult> ExecuteOnSqlite(SqliteConnection& connection, std::string_view sql,
                                      RowReceiver* receiver, std::stop_token stop);

}  // namespace sluice::catalog
