#include "catalog/sqlite/sqlite_source.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/mutex.h"
#include "catalog/dataset.pb.h"
#include "catalog/embedded_session.h"
#include "catalog/sql/sqlstate.h"
#include "catalog/sql/token_limit.h"
#include "catalog/sqlite/sqlite_columns_internal.h"
#include "catalog/sqlite/sqlite_database_internal.h"
#include "catalog/sqlite/sqlite_guard_internal.h"
#include "catalog/sqlite/sqlite_session_internal.h"
#include "catalog/sqlite/sqlite_unforeseen_internal.h"
#include "catalog/store/catalog_tables.h"
#include "catalog/table_loader.h"

namespace sluice::catalog {
namespace {

class SqliteSource final : public DataSource {
 public:
  SqliteSource(std::shared_ptr<SqliteDatabase> database, std::string url)
      : url_(std::move(url)), shared_(std::move(database)), database_(*shared_) {}

  ~SqliteSource() override {
    MutexLock lock(session_mutex_);
    if (guard_.has_value()) {  // the connection may serve another source
      session_->Watch();
      sqlite3_db_config(session_->handle(), SQLITE_DBCONFIG_DEFENSIVE, 0, nullptr);
    }
  }

  Status Connect() {
    MutexLock lock(session_mutex_);
    ASSIGN_OR_RETURN(session_, database_.writers().Take());
    return OkStatus();
  }

  std::string_view dialect() const override { return "sqlite"; }
  const std::string& url() const override { return url_; }
  std::string secret() const override { return ""; }

  Result<ExecuteResult> Execute(std::string_view sql, RowReceiver* receiver,
                                std::stop_token stop) override {
    // One connection for all statements, so that BEGIN; ...; COMMIT works.
    MutexLock lock(session_mutex_);
    RETURN_IF_ERROR(CheckTokens(sql));
    const std::string own = InEmbeddedDialect(sql);
    if (guard_.has_value()) {
      guard_->Begin(own);
    }
    Result<ExecuteResult> result = ExecuteOnSqlite(*session_, own, receiver, std::move(stop));
    if (result.ok() || !guard_.has_value() || guard_->refusal().empty()) {
      return result.ok() || own == sql ? std::move(result)
                                       : AtName(result.status().MovedTo({}), sql);
    }
    return DatabaseError("42501", guard_->refusal());
  }
  void GuardSession() override {
    MutexLock lock(session_mutex_);
    sqlite3_db_config(session_->handle(), SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    guard_.emplace(session_->handle());
  }

  Status BeginStatement(std::string_view /*statement*/, std::stop_token stop) override {
    MutexLock lock(session_mutex_);
    database_.HearStop(std::stop_token());
    RETURN_IF_ERROR(CheckSqliteSession(*session_));
    ASSIGN_OR_RETURN(has_more_, HasMoreThanMain(*session_));
    database_.HearStop(std::move(stop));
    return OkStatus();
  }
  Result<StatementSession> ExportSession() override {
    if (database_.location().in_memory()) {
      return Unimplemented("no other process sees a database in memory")
          .Hint("give a file: --source sqlite:my.db");
    }
    return DataSource::ExportSession();
  }
  void HearStop(std::stop_token stop) override { database_.HearStop(std::move(stop)); }
  void EndStatement() override {
    MutexLock lock(session_mutex_);
    has_more_ = false;
    database_.HearStop(std::stop_token());
  }
  Status CheckNoTransaction() override {
    MutexLock lock(session_mutex_);
    return CheckNoSqliteTransaction(*session_);
  }

  std::string Fold(std::string_view name) const override { return std::string(name); }
  size_t most_columns() const override { return 2'000; }  // SQLITE_MAX_COLUMN

  Result<Schema> Describe(std::string_view select) override {
    RETURN_IF_ERROR(CheckTokens(select));
    const std::string own = InEmbeddedDialect(select);
    RETURN_IF_ERROR(CheckNothingOfSession(own));
    ASSIGN_OR_RETURN(SqlitePool::Lease connection, database_.TakeForStatement());
    Result<Schema> described = DescribeSqliteSelect(*connection, own);
    if (!described.ok() && own != select) {  // places count from the select as it was written
      described = AtName(described.status().MovedTo({}), select);
    }
    return WithNearestName(*connection, std::move(described));
  }

  Result<std::vector<ColumnKey>> DescribeKeys(std::string_view select,
                                              const Schema& /*schema*/) override {
    ASSIGN_OR_RETURN(SqlitePool::Lease connection, database_.TakeForStatement());
    RETURN_IF_ERROR(CheckTokens(select));
    return SqliteKeys(*connection, InEmbeddedDialect(select));
  }

  Result<std::vector<TableName>> SourceTables(std::string_view select) override {
    ASSIGN_OR_RETURN(SqlitePool::Lease connection, database_.TakeForStatement());
    std::set<std::pair<std::string, std::string>> read;
    const auto note = [&read](const SqliteConnection::Touched& touched) {
      if (touched.action == SQLITE_READ && touched.first != nullptr && *touched.first != '\0') {
        // For a table of which no column is read, count(*), it reports only the name as written.
        read.emplace(touched.schema == nullptr ? "" : touched.schema, touched.first);
      }
    };
    RETURN_IF_ERROR(CheckTokens(select));
    RETURN_IF_ERROR(connection->PrepareSelect(InEmbeddedDialect(select), note).status());
    std::vector<TableName> tables;
    for (const auto& [schema, name] : read) {
      ASSIGN_OR_RETURN(const std::optional<TableName> table, Find(*connection, {schema, name}));
      if (table) {
        tables.push_back(*table);
      }
    }
    return tables;
  }

  Status Read(std::string_view select, RowReceiver* receiver) override {
    ASSIGN_OR_RETURN(SqlitePool::Lease connection, database_.TakeForStatement());
    RETURN_IF_ERROR(CheckTokens(select));
    const std::string own = InEmbeddedDialect(select);
    RETURN_IF_ERROR(connection->PrepareSelect(own).status());
    return ExecuteOnSqlite(*connection, own, receiver, database_.stop()).status();
  }
  Result<SelectStatistics> Statistics(std::string_view select, const Schema& schema,
                                      const StatisticsOptions& options) override {
    RETURN_IF_ERROR(CheckTokens(select));
    return SqliteStatistics(database_, InEmbeddedDialect(select), schema, options);
  }
  Result<CutEstimate> EstimateCut(std::string_view select, const DatasetOptions& options) override {
    RETURN_IF_ERROR(CheckTokens(select));
    return EstimateSqliteCut(database_, InEmbeddedDialect(select), options);
  }
  Result<std::unique_ptr<Dataset>> OpenDataset(std::string_view select,
                                               const DatasetOptions& options) override {
    RETURN_IF_ERROR(CheckTokens(select));
    return OpenSqliteDataset(database_, url_, InEmbeddedDialect(select), options);
  }
  Result<std::unique_ptr<ShardReader>> OpenReader(const DatasetSpec& spec) override {
    return OpenSqliteReader(database_, spec);
  }

  Result<std::optional<TableName>> ResolveTable(const TableName& table) override {
    ASSIGN_OR_RETURN(SqlitePool::Lease connection, database_.TakeForStatement());
    return Find(*connection, table);
  }

  Result<ResultPlan> PlanResultTable(const ResultTable& table, const Schema* columns) override {
    {
      MutexLock lock(session_mutex_);
      if (has_more_) {
        RETURN_IF_ERROR(CheckResultInMain(*session_, table.name));
      }
    }
    return PlanSqliteResult(database_, table, columns);
  }
  Result<std::unique_ptr<TableWriter>> OpenWriter(const ResultTable& table,
                                                  const Schema& schema) override {
    return OpenSqliteWriter(database_, tables_, table, schema);
  }
  Result<std::unique_ptr<TableLoader>> OpenLoader(const TableName& table, const Schema& columns,
                                                  bool make) override {
    return OpenSqliteLoader(database_, table, columns, make);
  }
  Status AppendRows(const TableName& table, const Schema& schema, const RowBatch& batch) override {
    return AppendSqliteRows(database_, table, schema, batch);
  }

  Status DropLeftovers() override { return database_.DropLeftovers(); }

 private:
  // What only the session's own connection has cannot be read on others.
  Status CheckNothingOfSession(std::string_view select) {
    MutexLock lock(session_mutex_);
    Status checked = CheckNoSessionFunctions(*session_, select);
    if (checked.ok() && has_more_) {
      checked = CheckOnlyMain(*session_, select);
    }
    if (guard_.has_value()) {
      guard_->Renew();  // these have had SQLite ask them
    }
    return checked;
  }

  // The table in the database's spelling.
  static Result<std::optional<TableName>> Find(SqliteConnection& connection,
                                               const TableName& table) {
    ASSIGN_OR_RETURN(const SqlRows rows,
                     connection.Query("SELECT schema, name FROM pragma_table_list"
                                      " WHERE lower(name) = lower($1)"
                                      " AND ($2 = '' OR lower(schema) = lower($2))"
                                      " ORDER BY schema <> 'main' LIMIT 1",
                                      {table.name, table.schema}));
    if (rows.empty()) {
      return std::optional<TableName>();
    }
    return std::optional<TableName>({TextCell(rows[0][0]), TextCell(rows[0][1])});
  }

  // SQLite names what is missing; the nearest existing name helps more.
  Result<Schema> WithNearestName(SqliteConnection& connection, Result<Schema> described) {
    if (described.ok() || described.status().sqlstate() != "42P01") {
      return described;
    }
    const std::string& message = described.status().message();
    const std::string missing = message.substr(message.rfind(' ') + 1);
    ASSIGN_OR_RETURN(const SqlRows rows, connection.Query("SELECT name FROM pragma_table_list"
                                                          " WHERE name NOT LIKE 'sqlite_%'",
                                                          {}));
    std::vector<std::string> names;
    for (const std::vector<Value>& row : rows) {
      names.push_back(TextCell(row[0]));
    }
    const auto near = NearestName(missing, names);
    return near.has_value() ? described.status().Hint(fmt::format("did you mean '{}'?", *near))
                            : described.status();
  }

  const std::string url_;
  const std::shared_ptr<SqliteDatabase> shared_;
  SqliteDatabase& database_;
  CatalogTables tables_{Dialect::kSqlite};  // one of them records which tables Sluice wrote
  Mutex session_mutex_;
  SqlitePool::Lease session_ GUARDED_BY(session_mutex_);
  std::optional<SqliteGuard> guard_ GUARDED_BY(session_mutex_);  // of GuardSession
  // The session has temporary tables, or ATTACHed databases.
  bool has_more_ GUARDED_BY(session_mutex_) = false;
};

}  // namespace

Result<Database> OpenSqlite(const SourceUrl& url) {
  auto shared = std::make_shared<SqliteDatabase>(LocateSqlite(url.path));
  auto source = std::make_unique<SqliteSource>(shared, url.text);
  RETURN_IF_ERROR(source->Connect());
  return Database{std::move(source), MakeSqliteCatalog(std::move(shared), url.text)};
}

}  // namespace sluice::catalog
