#include "catalog/postgres/postgres_source.h"

#include <fmt/core.h>

#include <utility>

#include "base/letter_case.h"
#include "base/mutex.h"
#include "catalog/postgres/postgres_columns_internal.h"
#include "catalog/postgres/postgres_database_internal.h"
#include "catalog/postgres/postgres_spooled_internal.h"
#include "catalog/postgres/postgres_stage_internal.h"
#include "catalog/result_table_internal.h"
#include "catalog/table_loader.h"

namespace sluice::catalog {
namespace {

// Reading so few rows takes less time than what lets other connections read them. Below the
// server's guess for a function of which it knows nothing (1,000).
constexpr int64_t kFewRows = 100;

class PostgresSource final : public DataSource {
 public:
  explicit PostgresSource(const SourceUrl& url)
      : database_({url.text, url.password, url.must_ask}) {}

  // The connection waits in the pool: a process that only reads shards needs no session.
  Status Connect(const std::stop_token& stop) { return database_.users_pool().Take(stop).status(); }

  std::string_view dialect() const override { return "postgresql"; }
  const std::string& url() const override { return database_.url(); }
  std::string secret() const override { return database_.password(); }

  Result<ExecuteResult> Execute(std::string_view sql, RowReceiver* receiver,
                                std::stop_token stop) override {
    // One connection for all statements, so that BEGIN; ...; COMMIT works.
    MutexLock lock(session_mutex_);
    if (!HasSession()) {
      session_ = PostgresPool::Lease();
      names_.Clear();
      ASSIGN_OR_RETURN(session_, database_.users_pool().Take(stop));
    }
    names_.Add(sql);
    changed_ = true;
    acts_as_.clear();
    Result<ExecuteResult> result =
        ExecuteOnPostgres(*session_, database_.type_names(), sql, receiver, std::move(stop));
    if (result.ok() && result->tag == "DISCARD ALL") {
      names_.Clear();
      captured_ = CapturedSession();
      captured_.statement_timeout = login_timeout_.value_or(captured_.statement_timeout);
      changed_ = !login_timeout_.has_value();
    }
    return result;
  }

  Status BeginStatement(std::string_view statement, std::stop_token stop) override {
    MutexLock lock(session_mutex_);
    captures_later_ = false;
    database_.EndStatement();
    database_.notices().Clear();
    if (!HasSession()) {
      RETURN_IF_ERROR(AskLogin(stop));
      session_ = PostgresPool::Lease();  // Execute reconnects
      names_.Clear();
      captured_ = CapturedSession();
      captured_.statement_timeout = login_timeout_.value_or(captured_.statement_timeout);
      changed_ = false;
      database_.BeginStatement({}, std::move(stop));
      return OkStatus();
    }
    RETURN_IF_ERROR(CheckNoPostgresTransaction(*session_));
    const size_t known_names = names_.names().size();
    names_.Add(statement);
    if (changed_ || names_.names().size() > known_names) {
      session_->Serve(stop, nullptr);
      Result<CapturedSession> captured = CaptureSession(*session_, names_);
      session_->IgnoreStop();
      RETURN_IF_ERROR(captured.status());
      captured_ = std::move(captured).value();
      changed_ = false;
    }
    database_.BeginStatement(captured_.settings, std::move(stop));
    return OkStatus();
  }
  Result<SettingValues> BeginStatementIn(const SessionLink& link, std::string_view statement,
                                         bool reads_once, const std::vector<std::string>& settings,
                                         std::stop_token stop) override {
    MutexLock lock(session_mutex_);
    database_.EndStatement();
    database_.notices().Clear();
    RETURN_IF_ERROR(database_.BorrowSession(link, stop));
    ASSIGN_OR_RETURN(const PostgresPool::Lease session, database_.TakeBorrowed());
    session->Serve(stop, nullptr);
    if (session->TransactionFailed()) {
      return CheckNoPostgresTransaction(*session);
    }
    names_.Clear();
    names_.Add(statement);
    captured_ = CapturedSession();
    ASSIGN_OR_RETURN(SettingValues values,
                     AskForSettings(*session, settings, reads_once, &captured_.statement_timeout,
                                    &borrowed_acts_as_));
    if (reads_once) {
      database_.BeginStatement({}, std::move(stop));
      captures_later_ = true;
    } else {
      RETURN_IF_ERROR(Capture(*session, std::move(stop)));
    }
    return values;
  }
  Result<std::string> ActingRole(std::stop_token stop) override {
    MutexLock lock(session_mutex_);
    if (database_.has_borrowed()) {
      return borrowed_acts_as_;
    }
    if (!HasSession()) {
      RETURN_IF_ERROR(AskLogin(stop));
      captured_.statement_timeout = login_timeout_.value_or(std::chrono::milliseconds(0));
    } else if (acts_as_.empty()) {
      if (session_->TransactionFailed()) {
        return CheckNoPostgresTransaction(*session_);
      }
      session_->HearStop(std::move(stop));
      const Status asked = AskForRole(*session_, &acts_as_, &captured_.statement_timeout);
      session_->IgnoreStop();
      RETURN_IF_ERROR(asked);
    }
    return acts_as_;
  }
  Result<std::string> ActingRoleIn(const SessionLink& link, std::stop_token stop) override {
    MutexLock lock(session_mutex_);
    database_.EndStatement();
    RETURN_IF_ERROR(database_.BorrowSession(link, stop));
    std::string role;
    const Status asked = [&]() -> Status {
      ASSIGN_OR_RETURN(const PostgresPool::Lease session, database_.TakeBorrowed());
      session->Serve(stop, nullptr);
      return session->TransactionFailed()
                 ? CheckNoPostgresTransaction(*session)
                 : AskForRole(*session, &role, &captured_.statement_timeout);
    }();
    database_.EndStatement();
    RETURN_IF_ERROR(asked);
    return role;
  }
  Result<StatementSession> ExportSession() override {
    {
      MutexLock lock(session_mutex_);
      if (captures_later_) {
        RETURN_IF_ERROR(ReadOnOtherConnections());
      }
    }
    const Status no_transaction = CheckNoTransaction();
    if (!no_transaction.ok()) {
      return no_transaction;
    }
    const std::string through = database_.through_session();
    if (!through.empty()) {
      return Unimplemented(
          fmt::format("only its own session can read what the statement reads: {}", through));
    }
    return database_.settings();
  }
  Status BeginStatementWith(const StatementSession& session, std::stop_token stop) override {
    MutexLock lock(session_mutex_);
    database_.notices().Clear();
    database_.BeginStatement(session, std::move(stop));
    return OkStatus();
  }
  void HearStop(std::stop_token stop) override { database_.HearStop(std::move(stop)); }
  std::chrono::milliseconds statement_timeout() override {
    MutexLock lock(session_mutex_);
    return captured_.statement_timeout;
  }
  std::vector<std::string> TakeNotices() override { return database_.notices().TakeLast(); }
  void EndStatement() override {
    MutexLock lock(session_mutex_);
    captures_later_ = false;
    database_.EndStatement();
  }
  Status CheckNoTransaction() override {
    MutexLock lock(session_mutex_);
    if (database_.has_borrowed()) {
      ASSIGN_OR_RETURN(const PostgresPool::Lease session, database_.TakeBorrowed());
      return CheckNoPostgresTransaction(*session);
    }
    return session_ ? CheckNoPostgresTransaction(*session_) : OkStatus();
  }

  std::string Fold(std::string_view name) const override { return LowerAscii(name); }
  size_t most_name_bytes() const override { return kMostPostgresNameBytes; }
  size_t most_columns() const override { return 1'600; }  // MaxHeapAttributeNumber

  Result<Schema> Describe(std::string_view select) override {
    RETURN_IF_ERROR(CheckNothingOfSession(select));
    ASSIGN_OR_RETURN(PostgresPool::Lease connection, database_.TakeForStatement());
    return WithNearestName(*connection, database_.Describe(*connection, select));
  }

  Status DescribeCopies(std::string_view select, Schema* schema) override {
    ASSIGN_OR_RETURN(PostgresPool::Lease connection, database_.TakeForStatement());
    return DescribeDeclarations(*connection, select, schema);
  }

  Result<std::vector<ColumnKey>> DescribeKeys(std::string_view select,
                                              const Schema& /*schema*/) override {
    ASSIGN_OR_RETURN(PostgresPool::Lease connection, database_.TakeForStatement());
    return PostgresKeys(*connection, select);
  }

  Result<std::vector<TableName>> SourceTables(std::string_view select) override {
    ASSIGN_OR_RETURN(PostgresPool::Lease connection, database_.TakeForStatement());
    return PostgresSourceTables(*connection, select);
  }

  Status Read(std::string_view select, RowReceiver* receiver) override {
    ASSIGN_OR_RETURN(PostgresPool::Lease connection, database_.TakeForStatement());
    RETURN_IF_ERROR(connection->Begin("BEGIN READ ONLY"));
    Status read =
        ExecuteOnPostgres(*connection, database_.type_names(), select, receiver, connection->stop())
            .status();
    connection->Rollback();
    return read;
  }
  Result<SelectStatistics> Statistics(std::string_view select, const Schema& schema,
                                      const StatisticsOptions& options) override {
    return PostgresStatistics(database_, select, schema, options);
  }
  Result<CutEstimate> EstimateCut(std::string_view select, const DatasetOptions& options) override {
    return EstimatePostgresCut(database_, select, options);
  }
  Result<std::unique_ptr<Dataset>> OpenDataset(std::string_view select,
                                               const DatasetOptions& options) override {
    return OpenPostgresDataset(database_, select, options);
  }
  Result<std::unique_ptr<Dataset>> HoldDataset(const DatasetSpec& spec) override {
    return HoldPostgresDataset(database_, spec);
  }
  Result<std::unique_ptr<ShardReader>> OpenReader(const DatasetSpec& spec) override {
    return OpenPostgresReader(database_, spec);
  }

  Result<std::optional<TableName>> ResolveTable(const TableName& table) override {
    ASSIGN_OR_RETURN(PostgresPool::Lease connection, database_.TakeForStatement());
    ASSIGN_OR_RETURN(const PostgresResult result,
                     connection->Ask("SELECT n.nspname, c.relname FROM pg_catalog.pg_class AS c"
                                     " JOIN pg_catalog.pg_namespace AS n"
                                     " ON n.oid OPERATOR(pg_catalog.=) c.relnamespace"
                                     " WHERE c.oid OPERATOR(pg_catalog.=)"
                                     " pg_catalog.to_regclass($1)",
                                     {table.Quoted()}));
    if (PQntuples(result.get()) == 0) {
      return std::optional<TableName>();
    }
    return std::optional<TableName>({std::string(PostgresText(result.get(), 0, 0)),
                                     std::string(PostgresText(result.get(), 0, 1))});
  }

  Result<ResultPlan> PlanResultTable(const ResultTable& table, const Schema* columns) override {
    Result<ResultPlan> plan = PlanPostgresResult(database_, table, columns);
    if (plan.ok() && table.name.schema.empty()) {
      RETURN_IF_ERROR(CheckNoTemporaryTable(plan->name));
    }
    return plan;
  }
  Result<std::unique_ptr<TableWriter>> OpenWriter(const ResultTable& table,
                                                  const Schema& schema) override {
    return OpenPostgresWriter(database_, table, schema);
  }
  Result<std::unique_ptr<TableLoader>> OpenLoader(const TableName& table, const Schema& columns,
                                                  bool make) override {
    return OpenPostgresLoader(database_, table, columns, make);
  }
  Status AppendRows(const TableName& table, const Schema& schema, const RowBatch& batch) override {
    return AppendPostgresRows(database_, table, schema, batch);
  }

  Status DropLeftovers() override {
    ASSIGN_OR_RETURN(PostgresPool::Lease connection, database_.pool().Take());
    return DropAbandonedStages(*connection);
  }

 private:
  bool HasSession() REQUIRES(session_mutex_) {
    return session_ && PQstatus(session_->handle()) == CONNECTION_OK;
  }

  // How a session of the login begins: asked once.
  Status AskLogin(const std::stop_token& stop) REQUIRES(session_mutex_) {
    if (session_) {
      acts_as_.clear();  // of a session that is lost
    }
    if (!acts_as_.empty() && login_timeout_.has_value()) {
      return OkStatus();
    }
    ASSIGN_OR_RETURN(const PostgresPool::Lease login, database_.users_pool().Take(stop));
    login->HearStop(stop);
    std::chrono::milliseconds timeout{0};
    RETURN_IF_ERROR(AskForRole(*login, &acts_as_, &timeout));
    login_timeout_ = timeout;
    return OkStatus();
  }

  // The state of the session, for the connections that read and write for it.
  Status Capture(PostgresConnection& session, std::stop_token stop) REQUIRES(session_mutex_) {
    captures_later_ = false;
    session.EndReading();
    ASSIGN_OR_RETURN(captured_, CaptureSession(session, names_));
    database_.BeginStatement(captured_.settings, std::move(stop));
    return OkStatus();
  }
  // Of a statement that could have read few rows through the session.
  Status ReadOnOtherConnections() REQUIRES(session_mutex_) {
    ASSIGN_OR_RETURN(const PostgresPool::Lease session, database_.TakeBorrowed());
    return Capture(*session, database_.stop());
  }

  // What only the session's own connection has cannot be read on others.
  Status CheckNothingOfSession(std::string_view select) {
    MutexLock lock(session_mutex_);
    if (captures_later_) {
      {
        ASSIGN_OR_RETURN(const PostgresPool::Lease session, database_.TakeBorrowed());
        ASSIGN_OR_RETURN(const std::optional<int64_t> rows,
                         EstimateRows(*session, TrimStatement(select, Dialect::kPostgres)));
        if (rows.has_value() && *rows <= kFewRows) {
          database_.ReadFewThroughSession(*rows);
          return OkStatus();
        }
      }
      RETURN_IF_ERROR(ReadOnOtherConnections());
    }
    if (database_.has_borrowed()) {
      ASSIGN_OR_RETURN(const PostgresPool::Lease session, database_.TakeBorrowed());
      ASSIGN_OR_RETURN(std::string why, ReasonToReadThroughSession(
                                            *session, TrimStatement(select, Dialect::kPostgres),
                                            captured_.has_temporary));
      if (!why.empty()) {
        database_.ReadThroughSession(std::move(why));
      }
      return OkStatus();
    }
    if (!session_ || !captured_.has_temporary) {
      return OkStatus();
    }
    session_->Serve(database_.stop(), nullptr);
    Status checked = CheckNothingTemporary(*session_, TrimStatement(select, Dialect::kPostgres));
    session_->IgnoreStop();
    return checked;
  }

  // The session could not see a result of the same name that is written elsewhere.
  Status CheckNoTemporaryTable(const TableName& result) {
    MutexLock lock(session_mutex_);
    PostgresPool::Lease borrowed;
    if (database_.has_borrowed()) {
      ASSIGN_OR_RETURN(borrowed, database_.TakeBorrowed());
    }
    const PostgresPool::Lease& session = borrowed ? borrowed : session_;
    if (!session || !captured_.has_temporary) {
      return OkStatus();
    }
    ASSIGN_OR_RETURN(const PostgresResult found,
                     session->Ask("SELECT FROM pg_catalog.pg_class AS c WHERE c.relname"
                                  " OPERATOR(pg_catalog.=) $1 AND c.relnamespace"
                                  " OPERATOR(pg_catalog.=) pg_catalog.pg_my_temp_schema()",
                                  {result.name}));
    return PQntuples(found.get()) == 0 ? OkStatus() : FindTemporaryTable("table", result);
  }

  PostgresDatabase database_;
  Mutex session_mutex_;
  PostgresPool::Lease session_ GUARDED_BY(session_mutex_);
  SettingNames names_ GUARDED_BY(session_mutex_);
  CapturedSession captured_ GUARDED_BY(session_mutex_);
  // The session's current_user, "": not known; and that of a borrowed session.
  std::string acts_as_ GUARDED_BY(session_mutex_);
  std::string borrowed_acts_as_ GUARDED_BY(session_mutex_);
  // With which a session of the login begins.
  std::optional<std::chrono::milliseconds> login_timeout_ GUARDED_BY(session_mutex_);
  // Since then something has run on the session's connection and may have changed it.
  bool changed_ GUARDED_BY(session_mutex_) = false;
  // The statement may turn out to need no other connection than the session's (BeginStatementIn).
  bool captures_later_ GUARDED_BY(session_mutex_) = false;
};

}  // namespace

Result<std::unique_ptr<DataSource>> OpenPostgres(const SourceUrl& url,
                                                 const std::stop_token& stop) {
  auto source = std::make_unique<PostgresSource>(url);
  RETURN_IF_ERROR(source->Connect(stop));
  return std::unique_ptr<DataSource>(std::move(source));
}

}  // namespace sluice::catalog
