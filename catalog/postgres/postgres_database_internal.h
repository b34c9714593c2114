#pragma once

#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "catalog/data_source.h"
#include "catalog/notice_log.h"
#include "catalog/postgres/postgres_connection_internal.h"
#include "catalog/postgres/postgres_local_socket_internal.h"
#include "catalog/postgres/postgres_session_internal.h"
#include "catalog/postgres/postgres_types_internal.h"

namespace sluice::catalog {

// The server's names for its types: format_type. Thread-safe.
class PostgresTypeNames {
 public:
  // `pool` must outlive this object; built-in types are known without asking.
  explicit PostgresTypeNames(PostgresPool& pool) : pool_(pool) {}
  // "" if unknown: a type created by an open transaction.
  std::string Name(Oid oid, int modifier);

 private:
  PostgresPool& pool_;
  Mutex mutex_;
  std::map<std::pair<Oid, int>, std::string> known_ GUARDED_BY(mutex_);
};

struct SpooledSelect;

// The server behind a PostgreSQL data source. Thread-safe.
class PostgresDatabase {
 public:
  explicit PostgresDatabase(PostgresAddress address);

  const std::string& url() const { return address_.url; }
  const std::string& password() const { return address_.password; }
  // For our own statements: connections of the login role, with their initial settings.
  PostgresPool& pool() { return pool_; }
  // For the user's own session: with the server's settings for the role.
  PostgresPool& users_pool() { return users_pool_; }
  PostgresTypeNames& type_names() { return type_names_; }

  // The session begins a statement: its settings, and what stops it.
  void BeginStatement(SessionSettings settings, std::stop_token stop);
  void HearStop(std::stop_token stop);
  // Forgets the statement.
  void EndStatement();
  NoticeLog& notices() { return notices_; }
  SessionSettings settings();
  std::stop_token stop();

  // For text of the user and for writing on behalf of the user: a connection with the session's
  // role, search_path and settings. Obeys the statement's stop.
  Result<PostgresPool::Lease> TakeForStatement();
  // For a result table: the session's own connection if its transaction is open.
  Result<PostgresPool::Lease> TakeForWriting();

  // The session's own connection, borrowed for the statement.
  Status BorrowSession(const SessionLink& link, const std::stop_token& stop);
  bool has_borrowed() const { return borrowed_ != nullptr; }
  Result<PostgresPool::Lease> TakeBorrowed();
  // From now on the statement's selects are read on the session's own connection, for `reason`.
  void ReadThroughSession(std::string reason);
  // The same for a select of about so few rows, which nobody need be told.
  void ReadFewThroughSession(int64_t rows);
  // That reason; "" if they are not.
  std::string through_session();
  // Of ReadFewThroughSession; nullopt: it was not called.
  std::optional<int64_t> few_rows();
  // The columns of a select on a connection of the statement; described once while the session's
  // own connection is reading.
  Result<Schema> Describe(PostgresConnection& connection, std::string_view select);
  // The rows of a select that goes through the session, read once for the whole statement.
  // With the copies that the options ask for.
  Result<std::shared_ptr<const SpooledSelect>> Spooled(std::string_view select,
                                                       const DatasetOptions& options);

  // The same for a dataset, which may have been opened by another process.
  Result<PostgresPool::Lease> TakeFor(const DatasetSpec& spec);

 private:
  Result<PostgresPool::Lease> TakeAs(const SessionSettings& settings);

  PostgresAddress address_;
  // Between BeginStatement and EndStatement, on the session's thread.
  std::unique_ptr<PostgresPool> borrowed_;
  std::map<std::string, std::shared_ptr<const SpooledSelect>, std::less<>> spools_;
  std::map<std::string, Schema, std::less<>> described_;
  NoticeLog notices_{NoticeLog::Repeated::kOnce};
  Mutex mutex_;
  SessionSettings settings_ GUARDED_BY(mutex_);
  std::string through_session_ GUARDED_BY(mutex_);
  std::optional<int64_t> few_rows_ GUARDED_BY(mutex_);
  std::stop_token stop_ GUARDED_BY(mutex_);
  PostgresPool pool_;  // the connections of both send notices
  PostgresPool users_pool_;
  PostgresTypeNames type_names_{pool_};
};

// The statements that begin a transaction which reads shards: rows come in the order of the table,
// and every shard by a scan of its own blocks. Imports the exported snapshot if one is given.
std::string BeginReading(std::string_view snapshot);

// The columns of a stream's batches.
struct StreamColumns {
  Schema schema;
  size_t decoded = SIZE_MAX;  // columns from here on are as ShowCell leaves them, and never refused
  // For each column, the column of the statement whose cells it takes; at most one decoded and one
  // other column take the same one, whose cells have one text (HasOneText). Empty: every column
  // takes the one of its own number.
  std::vector<size_t> sources = {};
};

// The rows of `sql`, decoded directly from the socket. The connection is used for nothing else
// until the stream is destroyed; destroying it before its end cancels the statement, and the
// surrounding transaction is lost. `connection` must outlive the stream.
Result<std::unique_ptr<RowStream>> OpenPostgresStream(PostgresConnection& connection,
                                                      std::string_view sql, StreamColumns columns);

// The same for a statement with parameters, once for each of `runs`, which hold the parameters'
// texts: the rows of one run after another. Only for connections without TLS (OnlyText).
Result<std::unique_ptr<RowStream>> OpenPostgresRuns(
    PostgresConnection& connection, std::string_view sql,
    const std::vector<std::vector<std::string>>& runs, StreamColumns columns);

// The same through libpq, for connections with TLS, whose socket cannot be read directly.
Result<std::unique_ptr<RowStream>> OpenLibpqStream(PostgresConnection& connection,
                                                   std::string_view sql, StreamColumns columns);

// The result format of each column of the statement.
std::vector<CellFormat> FormatsOf(const StreamColumns& columns);
// For a connection with TLS: settings under which the texts of decoded columns can be decoded.
Status MakeDecodable(PostgresConnection& connection, const StreamColumns& columns);
// The same rows from another process, which sends the server's messages. `text`: every cell is
// text. `connection`: whose stop ends it, and which is not read.
Result<std::unique_ptr<RowStream>> OpenForwardedStream(PostgresConnection& connection,
                                                       LocalSocket from, bool text,
                                                       StreamColumns columns);

Result<std::unique_ptr<Dataset>> OpenPostgresDataset(PostgresDatabase& database,
                                                     std::string_view select,
                                                     const DatasetOptions& options);
// DataSource::HoldDataset.
Result<std::unique_ptr<Dataset>> HoldPostgresDataset(PostgresDatabase& database,
                                                     const DatasetSpec& spec);
// The error of a transaction that began on a dataset's snapshot: 72000 if the snapshot has ended.
Status SnapshotGone(Status status);
Result<CutEstimate> EstimatePostgresCut(PostgresDatabase& database, std::string_view select,
                                        const DatasetOptions& options);
Result<std::unique_ptr<ShardReader>> OpenPostgresReader(PostgresDatabase& database,
                                                        const DatasetSpec& spec);
Result<SelectStatistics> PostgresStatistics(PostgresDatabase& database, std::string_view select,
                                            const Schema& schema, const StatisticsOptions& options);
// DataSource::SourceTables.
Result<std::vector<TableName>> PostgresSourceTables(PostgresConnection& connection,
                                                    std::string_view select);
Result<ResultPlan> PlanPostgresResult(PostgresDatabase& database, const ResultTable& table,
                                      const Schema* columns);
Result<std::unique_ptr<TableWriter>> OpenPostgresWriter(PostgresDatabase& database,
                                                        const ResultTable& table,
                                                        const Schema& schema);
Result<std::unique_ptr<TableLoader>> OpenPostgresLoader(PostgresDatabase& database,
                                                        const TableName& table,
                                                        const Schema& columns, bool make);
Status AppendPostgresRows(PostgresDatabase& database, const TableName& table, const Schema& schema,
                          const RowBatch& batch);
// Runs one statement on `connection`.
Result<ExecuteResult> ExecuteOnPostgres(PostgresConnection& connection,
                                        PostgresTypeNames& type_names, std::string_view sql,
                                        RowReceiver* receiver, std::stop_token stop);

}  // namespace sluice::catalog
