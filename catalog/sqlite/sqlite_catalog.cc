#include <functional>
#include <utility>

#include "base/mutex.h"
#include "catalog/catalog.h"
#include "catalog/sqlite/sqlite_database_internal.h"
#include "catalog/sqlite/sqlite_source.h"
#include "catalog/store/catalog_tables.h"
#include "catalog/store/sql_job_store.h"
#include "catalog/store/sql_model_store.h"

// The catalog as tables of the file itself: everyone who can open the file owns all of it.
namespace sluice::catalog {
namespace {

// A pooled connection, in the interface of the stores.
class SqliteStoreSession final : public SqlSession {
 public:
  explicit SqliteStoreSession(SqlitePool::Lease connection) : connection_(std::move(connection)) {}
  Result<SqlRows> Query(std::string_view sql,
                        const std::vector<SqlParameter>& parameters) override {
    return connection_->Query(sql, parameters);
  }

 private:
  SqlitePool::Lease connection_;
};

class SqliteCatalog final : public Catalog {
 public:
  SqliteCatalog(std::shared_ptr<SqliteDatabase> database, std::string url)
      : shared_(std::move(database)),
        url_(std::move(url)),
        models_(MakeModelStore(
            tables_,
            std::make_unique<Sessions>(*shared_, Sessions::For::kModels, [this] { return stop(); }),
            nullptr)),
        types_(MakeModelStore(
            tables_,
            std::make_unique<Sessions>(*shared_, Sessions::For::kModels, [this] { return stop(); }),
            nullptr, Versioned::kModelTypes)),
        jobs_(MakeJobStore(tables_,
                           std::make_unique<Sessions>(*shared_, Sessions::For::kJobs, nullptr),
                           nullptr)) {}

  std::string_view dialect() const override { return "sqlite"; }
  const std::string& url() const override { return url_; }
  std::string secret() const override { return ""; }
  const Principal& principal() const override { return who_; }
  Result<std::string> PrincipalId() override { return std::string(); }
  void LimitRoles(const RoleLimits& limits) override { tables_.LimitRoles(limits); }
  Result<bool> IsLimited() override { return true; }
  std::unique_ptr<Catalog> For(Principal /*who*/) override {
    std::unique_ptr<Catalog> catalog = MakeSqliteCatalog(shared_, url_);
    catalog->LimitRoles(tables_.limits());
    return catalog;
  }

  void HearStop(std::stop_token stop) override {
    const MutexLock lock(mutex_);
    stop_ = std::move(stop);
  }

  Result<DatabaseLogin> LoginForJob(int64_t /*job*/, bool /*on_this_machine*/) override {
    return DatabaseLogin{url_, ""};
  }

  Status MakeTables() override {
    ASSIGN_OR_RETURN(const SqlitePool::Lease connection, shared_->TakeForStatement(stop()));
    return tables_.Create(*connection);
  }
  Status AllowStaging() override { return OkStatus(); }
  Status DropLeftovers() override { return shared_->DropLeftovers(); }
  ModelStore& models() override { return *models_; }
  ModelStore& model_types() override { return *types_; }
  JobStore& jobs() override { return *jobs_; }
  std::unique_ptr<JobStore> JobsFor(std::stop_token stop) override {
    return MakeJobStore(tables_,
                        std::make_unique<Sessions>(*shared_, Sessions::For::kJobs,
                                                   [stop = std::move(stop)] { return stop; }),
                        nullptr);
  }

 private:
  class Sessions final : public SqlDatabase {
   public:
    // Models are written like other statements' results: into a write-ahead log.
    enum class For { kModels, kJobs };
    Sessions(SqliteDatabase& database, For what, std::function<std::stop_token()> stop)
        : database_(database), what_(what), stop_(std::move(stop)) {}
    Dialect dialect() const override { return Dialect::kSqlite; }
    Result<std::unique_ptr<SqlSession>> TakeSession() override {
      ASSIGN_OR_RETURN(SqlitePool::Lease connection, what_ == For::kModels
                                                         ? database_.TakeForStatement(stop())
                                                         : database_.writers().Take(stop()));
      connection->HearStop(stop());
      return std::unique_ptr<SqlSession>(new SqliteStoreSession(std::move(connection)));
    }
    Result<std::unique_ptr<SqlSession>> OpenAnew() override { return database_.OpenAnew(stop()); }

   private:
    std::stop_token stop() const { return stop_ ? stop_() : std::stop_token(); }

    SqliteDatabase& database_;
    const For what_;
    const std::function<std::stop_token()> stop_;
  };

  std::stop_token stop() {
    const MutexLock lock(mutex_);
    return stop_;
  }

  const std::shared_ptr<SqliteDatabase> shared_;
  const std::string url_;
  const Principal who_;
  CatalogTables tables_{Dialect::kSqlite};
  Mutex mutex_;
  std::stop_token stop_ GUARDED_BY(mutex_);
  const std::unique_ptr<ModelStore> models_;
  const std::unique_ptr<ModelStore> types_;
  const std::unique_ptr<JobStore> jobs_;
};

}  // namespace

std::unique_ptr<Catalog> MakeSqliteCatalog(std::shared_ptr<SqliteDatabase> database,
                                           std::string url) {
  return std::make_unique<SqliteCatalog>(std::move(database), std::move(url));
}

}  // namespace sluice::catalog
