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
#include "catalog/postgres/postgres_session_internal.h"
#include "catalog/postgres/postgres_types_internal.h"

namespace sluice::catalog {

// What the server calls its types: format_type. Thread-safe.
class PostgresTypeNames {
 public:
  // `pool` outlives this object; types that every server has are known without asking.
  explicit PostgresTypeNames(PostgresPool& pool) : pool_(pool) {}
  // "" when it cannot be told: a type that an open transaction has just made.
  std::string Name(Oid oid, int modifier);

 private:
  PostgresPool& pool_;
  Mutex mutex_;
  std::map<std::pair<Oid, int>, std::string> known_ GUARDED_BY(mutex_);
};

struct SpooledSelect;

// The server that a PostgreSQL data source stands for. Thread-safe.
class PostgresDatabase {
 public:
  explicit PostgresDatabase(PostgresAddress address);

  const std::string& url() const { return address_.url; }
  const std::string& password() const { return address_.password; }
  // For what is ours: connections of the login role, as they were opened.
  PostgresPool& pool() { return pool_; }
  // For the user's own session: as the server gives them to the role.
  PostgresPool& users_pool() { return users_pool_; }
  PostgresTypeNames& type_names() { return type_names_; }

  // The statement that the session begins: what it has SET, and what ends it.
  void BeginStatement(SessionSettings settings, std::stop_token stop);
  void HearStop(std::stop_token stop);
  // Nothing is left of a statement.
  void EndStatement();
  NoticeLog& notices() { return notices_; }
  SessionSettings settings();
  std::stop_token stop();

  // For the text that a user wrote, and for what is written for the user: a connection that is what
  // the session's own is, with its role, search_path and settings. It hears the statement's stop.
  Result<PostgresPool::Lease> TakeForStatement();
  // For a result table: the session's own connection where its transaction is open.
  Result<PostgresPool::Lease> TakeForWriting();

  // The session's own connection, borrowed for the statement.
  Status BorrowSession(const SessionLink& link, const std::stop_token& stop);
  bool has_borrowed() const { return borrowed_ != nullptr; }
  Result<PostgresPool::Lease> TakeBorrowed();
  // From now on the statement's selects are read on the session's own connection, because of
  // `reason`.
  void GoThroughSession(std::string reason);
  // "" where they are not.
  std::string through_session();
  // The rows of a select that goes through the session, read once for the whole statement.
  // `copies`: with what CopiedColumns of them show.
  Result<std::shared_ptr<const SpooledSelect>> Spooled(
      std::string_view select, std::optional<CopiedColumns::Purpose> copies);

  // The same for a dataset, which another process, too, may have opened.
  Result<PostgresPool::Lease> TakeFor(const DatasetSpec& spec);

 private:
  Result<PostgresPool::Lease> TakeAs(const SessionSettings& settings);

  PostgresAddress address_;
  // Between BeginStatement and EndStatement, in the session's thread.
  std::unique_ptr<PostgresPool> borrowed_;
  std::map<std::string, std::shared_ptr<const SpooledSelect>, std::less<>> spools_;
  NoticeLog notices_{NoticeLog::Repeated::kOnce};
  Mutex mutex_;
  SessionSettings settings_ GUARDED_BY(mutex_);
  std::string through_session_ GUARDED_BY(mutex_);
  std::stop_token stop_ GUARDED_BY(mutex_);
  PostgresPool pool_;  // the connections of both tell notices
  PostgresPool users_pool_;
  PostgresTypeNames type_names_{pool_};
};

// What a transaction that reads shards begins with: rows come in the order of the table, and every
// shard by a scan of its own blocks. Takes the exported snapshot when one is given.
std::string BeginReading(std::string_view snapshot);

// The rows of `sql`, whose columns are those of `schema`, decoded straight from the wire; from
// column `decoded` on they are as ShowCell leaves them, and never refused. The
// connection serves nothing else until the stream is gone; a stream that is left before its end
// cancels the statement, and the transaction around it is lost. `connection` outlives the stream.
Result<std::unique_ptr<RowStream>> OpenPostgresStream(PostgresConnection& connection,
                                                      std::string_view sql, Schema schema,
                                                      size_t decoded = SIZE_MAX);

// The same for a statement with parameters, once for each of `runs`, which are their texts: the
// rows of one run after another. For connections without TLS only (OnlyText).
Result<std::unique_ptr<RowStream>> OpenPostgresRuns(
    PostgresConnection& connection, std::string_view sql,
    const std::vector<std::vector<std::string>>& runs, Schema schema, size_t decoded);

// The same through libpq, for connections with TLS, where the socket alone is not enough.
Result<std::unique_ptr<RowStream>> OpenLibpqStream(PostgresConnection& connection,
                                                   std::string_view sql, Schema schema,
                                                   size_t decoded = SIZE_MAX);

Result<std::unique_ptr<Dataset>> OpenPostgresDataset(PostgresDatabase& database,
                                                     std::string_view select,
                                                     const DatasetOptions& options);
// DataSource::HoldDataset.
Result<std::unique_ptr<Dataset>> HoldPostgresDataset(PostgresDatabase& database,
                                                     const DatasetSpec& spec);
// What a transaction met that began on a dataset's snapshot: 72000 where that has gone.
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
