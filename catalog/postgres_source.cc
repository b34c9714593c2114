#include "catalog/postgres_source.h"

#include <fmt/core.h>

#include <utility>

#include "base/mutex.h"
#include "catalog/catalog_tables.h"
#include "catalog/dataset.pb.h"
#include "catalog/postgres_cut_internal.h"
#include "catalog/postgres_database_internal.h"
#include "catalog/sql_job_store.h"
#include "catalog/sql_model_store.h"

namespace sluice::catalog {
namespace {

// A pooled connection as the stores see it.
class PooledSession final : public SqlSession {
 public:
  explicit PooledSession(PostgresPool::Lease connection) : connection_(std::move(connection)) {}
  Result<SqlRows> Query(std::string_view sql,
                        const std::vector<SqlParameter>& parameters) override {
    return connection_->Query(sql, parameters);
  }

 private:
  PostgresPool::Lease connection_;
};

class PostgresSource final : public DataSource {
 public:
  explicit PostgresSource(const SourceUrl& url)
      : database_({url.text, url.password}),
        tables_(database_),
        models_(MakeModelStore(tables_)),
        jobs_(MakeJobStore(tables_)) {}

  Status Connect() {
    MutexLock lock(session_mutex_);
    ASSIGN_OR_RETURN(session_, database_.pool().Take());
    return OkStatus();
  }

  std::string_view dialect() const override { return "postgresql"; }
  const std::string& url() const override { return database_.url(); }
  std::string secret() const override { return database_.password(); }

  Result<ExecuteResult> Execute(std::string_view sql, RowReceiver* receiver,
                                std::stop_token stop) override {
    // One connection for all statements, so that BEGIN; ...; COMMIT works.
    MutexLock lock(session_mutex_);
    if (!session_ || PQstatus(session_->handle()) != CONNECTION_OK) {
      session_ = PostgresPool::Lease();
      ASSIGN_OR_RETURN(session_, database_.pool().Take());
    }
    return ExecuteOnPostgres(*session_, sql, receiver, std::move(stop));
  }

  Result<Schema> Describe(std::string_view select) override {
    ASSIGN_OR_RETURN(PostgresPool::Lease connection, database_.pool().Take());
    return WithNearestName(*connection, DescribePostgresSelect(*connection, select));
  }

  Result<std::vector<std::string>> SourceTables(std::string_view select) override {
    ASSIGN_OR_RETURN(PostgresPool::Lease connection, database_.pool().Take());
    return TablesInPlan(*connection, select);
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
  Result<std::unique_ptr<ShardReader>> OpenReader(const DatasetSpec& spec) override {
    return OpenPostgresReader(database_, spec);
  }

  Result<std::optional<std::string>> ResolveTable(std::string_view table) override {
    ASSIGN_OR_RETURN(const TableName name, ParseTableName(table, Dialect::kPostgres));
    ASSIGN_OR_RETURN(PostgresPool::Lease connection, database_.pool().Take());
    ASSIGN_OR_RETURN(const PostgresResult result,
                     connection->Ask("SELECT n.nspname || '.' || c.relname FROM pg_class c"
                                     " JOIN pg_namespace n ON n.oid = c.relnamespace"
                                     " WHERE c.oid = to_regclass($1)",
                                     {name.Quoted()}));
    if (PQntuples(result.get()) == 0) {
      return std::optional<std::string>();
    }
    return std::optional<std::string>(std::string(PostgresText(result.get(), 0, 0)));
  }

  Result<std::unique_ptr<TableWriter>> CreateTable(std::string_view table,
                                                   const Schema& schema) override {
    return CreatePostgresTable(database_, table, schema);
  }
  Status AppendRows(std::string_view table, const Schema& schema, const RowBatch& batch) override {
    return AppendPostgresRows(database_, table, schema, batch);
  }

  ModelStore& models() override { return *models_; }
  JobStore& jobs() override { return *jobs_; }

 private:
  // PostgreSQL hints at columns with a near name, but not at tables.
  Result<Schema> WithNearestName(PostgresConnection& connection, Result<Schema> described) {
    if (described.ok() || described.status().sqlstate() != "42P01") {
      return described;
    }
    // relation "tabel" does not exist
    const std::string& message = described.status().message();
    const size_t open = message.find('"');
    const size_t close = message.rfind('"');
    if (open == std::string::npos || close == open) {
      return described;
    }
    ASSIGN_OR_RETURN(
        const PostgresResult tables,
        connection.Ask("SELECT CASE WHEN pg_table_is_visible(c.oid) THEN c.relname"
                       " ELSE n.nspname || '.' || c.relname END FROM pg_class c"
                       " JOIN pg_namespace n ON n.oid = c.relnamespace"
                       " WHERE c.relkind IN ('r', 'v', 'm', 'f', 'p')"
                       " AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')"));
    std::vector<std::string> names;
    names.reserve(static_cast<size_t>(PQntuples(tables.get())));
    for (int i = 0; i < PQntuples(tables.get()); ++i) {
      names.emplace_back(PostgresText(tables.get(), i, 0));
    }
    const auto near = NearestName(message.substr(open + 1, close - open - 1), names);
    return near.has_value() ? described.status().Hint(fmt::format("did you mean '{}'?", *near))
                            : described.status();
  }

  PostgresDatabase database_;
  CatalogTables tables_;
  std::unique_ptr<ModelStore> models_;
  std::unique_ptr<JobStore> jobs_;
  Mutex session_mutex_;
  PostgresPool::Lease session_ GUARDED_BY(session_mutex_);
};

}  // namespace

PostgresDatabase::PostgresDatabase(PostgresAddress address)
    : address_(std::move(address)),
      pool_([this] { return PostgresConnection::Connect(address_); }) {}

Result<std::unique_ptr<SqlSession>> PostgresDatabase::TakeSession() {
  ASSIGN_OR_RETURN(PostgresPool::Lease connection, pool_.Take());
  return std::unique_ptr<SqlSession>(new PooledSession(std::move(connection)));
}

Result<std::unique_ptr<DataSource>> OpenPostgres(const SourceUrl& url) {
  auto source = std::make_unique<PostgresSource>(url);
  RETURN_IF_ERROR(source->Connect());
  return std::unique_ptr<DataSource>(std::move(source));
}

}  // namespace sluice::catalog
