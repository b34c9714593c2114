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
  // `first_readers`: made at once; more are added on demand, while the database does not change.
  // `stop` ends what runs on its readers, and the wait for one.
  static Result<std::shared_ptr<SqliteSnapshot>> Open(SqlitePool& readers, SqlitePool& writers,
                                                      size_t first_readers, std::stop_token stop);

  // A reader for the caller alone; waits a while if all are taken and none can be added.
  Result<SqlitePool::Lease> Take();
  void GiveBack(SqlitePool::Lease reader);
  // Ends the transactions of the unused readers, and of the others when they are returned.
  void Close();

 private:
  SqliteSnapshot(SqlitePool& pool, SqlitePool::Lease watcher, std::stop_token stop)
      : pool_(pool), stop_(std::move(stop)), watcher_(std::move(watcher)) {}
  Result<SqlitePool::Lease> NewReader();
  // Begins a transaction on each reader, all at the same state of the database; false, with none
  // begun, if there was a commit meanwhile.
  Result<bool> TryBegin(std::vector<SqlitePool::Lease>* readers) REQUIRES(mutex_);
  // One more reader of the same state; an empty lease if the database has changed.
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

// The database behind a SQLite data source: its connections and its open snapshots. Thread-safe.
class SqliteDatabase {
 public:
  explicit SqliteDatabase(SqliteLocation location);

  const SqliteLocation& location() const { return location_; }
  SqlitePool& writers() { return writers_; }

  // Ends the statement that the session runs.
  void HearStop(std::stop_token stop);
  std::stop_token stop();
  // For the text of an extended statement, and for writing on its behalf: obeys the statement's
  // stop. The first one switches the database to a write-ahead log; a plain statement changes
  // nothing of its own accord.
  Result<SqlitePool::Lease> TakeForStatement() { return TakeForStatement(stop()); }
  // The same with a stop of its own.
  Result<SqlitePool::Lease> TakeForStatement(const std::stop_token& stop);
  SqlitePool& readers() { return readers_; }

  // Removes stages and staging tables without an owner, and shortens a write-ahead log that nobody
  // reads any more. Waits for nobody's lock.
  Status DropLeftovers();

  // Like SqlDatabase::OpenAnew.
  Result<std::unique_ptr<SqlSession>> OpenAnew(const std::stop_token& stop);

  // A snapshot is found again by the name in DatasetSpec.snapshot.
  std::string AddSnapshot(std::shared_ptr<SqliteSnapshot> snapshot);
  std::shared_ptr<SqliteSnapshot> FindSnapshot(const std::string& name);
  void RemoveSnapshot(const std::string& name);

 private:
  // A connection, provided that the path still leads to the file that was opened first.
  Result<std::unique_ptr<SqliteConnection>> Connect(SqliteConnection::Access access);
  Status DropLeftoversOn(SqliteConnection& connection) const;

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

// The location of "PATH" or ":memory:". Every call for ":memory:" is a new, empty database.
SqliteLocation LocateSqlite(std::string_view path);
// A file next to the database, or a second in-memory database.
SqliteLocation LocateBeside(const SqliteLocation& location, std::string_view suffix);
// The same place, opened without locks because nothing will write to it any more.
SqliteLocation Immutable(const SqliteLocation& location);

// The rows of `sql`, whose columns are those of `schema`; those from `decoded` on are copied.
// `connection` must outlive the stream.
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
