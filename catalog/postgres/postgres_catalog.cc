#include <fmt/core.h>

#include <atomic>
#include <utility>

#include "base/mutex.h"
#include "catalog/catalog.h"
#include "catalog/postgres/postgres_connection_internal.h"
#include "catalog/postgres/postgres_database_internal.h"
#include "catalog/postgres/postgres_source.h"
#include "catalog/postgres/postgres_stage_internal.h"
#include "catalog/source_url.h"
#include "catalog/spool/spool.h"
#include "catalog/store/catalog_tables.h"
#include "catalog/store/job_logins.h"
#include "catalog/store/role_oid.h"
#include "catalog/store/sql_job_store.h"
#include "catalog/store/sql_model_store.h"

// The catalog in schema sluice: connections of Sluice's own login, which never run text of a user.
namespace sluice::catalog {
namespace {

// The tables belong to the login that used Sluice first; another login of Sluice needs grants.
Status WithGrants(Status status, const PostgresConnection& connection) {
  if (status.sqlstate() != "42501") {
    return status;
  }
  const std::string role = QuoteName(PQuser(connection.handle()));
  return std::move(status).Hint(
      fmt::format("models and jobs are kept in schema sluice, and the role needs rights there: let "
                  "its owner GRANT USAGE ON SCHEMA sluice TO {0} and GRANT SELECT, INSERT, "
                  "UPDATE, DELETE ON ALL TABLES IN SCHEMA sluice TO {0}",
                  role));
}

// A pooled connection, in the interface of the stores.
class PostgresStoreSession final : public SqlSession {
 public:
  explicit PostgresStoreSession(PostgresPool::Lease connection)
      : connection_(std::move(connection)) {}
  Result<SqlRows> Query(std::string_view sql,
                        const std::vector<SqlParameter>& parameters) override {
    Result<SqlRows> rows = connection_->Query(sql, parameters);
    return rows.ok() ? std::move(rows) : WithGrants(rows.status(), *connection_);
  }

 private:
  PostgresPool::Lease connection_;
};

// Shared by all sessions of a catalog. Thread-safe.
struct CatalogServer {
  explicit CatalogServer(const SourceUrl& url)
      : address{url.text, url.password, false},
        pool([this](const std::stop_token& stop) { return Connect(stop); }) {}

  // A role that may create databases can drop this one and put its own in its place, with a trigger
  // on a table of our name.
  Result<std::unique_ptr<PostgresConnection>> Connect(const std::stop_token& stop) {
    ASSIGN_OR_RETURN(auto connection,
                     PostgresConnection::Connect(address, stop, ConnectionUse::kCatalog));
    ASSIGN_OR_RETURN(
        const SqlRows found,
        connection->Query(
            "SELECT d.oid::pg_catalog.int8, d.datistemplate, d.datname::pg_catalog.text"
            " FROM pg_catalog.pg_database AS d WHERE d.datname"
            " OPERATOR(pg_catalog.=) pg_catalog.current_database()",
            {}));
    if (found.size() != 1 || IntegerCell(found[0].at(1)) != 0) {
      return InvalidArgument(
                 fmt::format("database \"{}\" is a template for others, and keeps no models and "
                             "jobs",
                             found.empty() ? "" : TextCell(found[0].at(2))))
          .SqlState("55000")
          .Hint("connect to a database of your own");
    }
    const int64_t oid = IntegerCell(found[0].at(0));
    if (database.exchange(oid) != oid) {
      tables.Forget();
    }
    return connection;
  }

  const PostgresAddress address;
  PostgresPool pool;
  CatalogTables tables{Dialect::kPostgres};
  std::atomic<int64_t> database = 0;  // the oid of the one that was connected to last
};

class PostgresCatalog final : public Catalog {
 public:
  PostgresCatalog(std::shared_ptr<CatalogServer> server, Principal who)
      : server_(std::move(server)),
        who_(std::move(who)),
        role_(std::make_shared<RoleOid>(who_.role)),
        models_(
            MakeModelStore(server_->tables, SessionsThatHear([this] { return stop(); }), role_)),
        types_(MakeModelStore(server_->tables, SessionsThatHear([this] { return stop(); }), role_,
                              Versioned::kModelTypes)),
        jobs_(MakeJobStore(server_->tables, SessionsThatHear({}), role_)) {}

  std::string_view dialect() const override { return "postgresql"; }
  const std::string& url() const override { return server_->address.url; }
  std::string secret() const override { return server_->address.password; }
  const Principal& principal() const override { return who_; }
  Result<std::string> PrincipalId() override {
    ASSIGN_OR_RETURN(const auto session, Sessions(*server_, stop()).TakeSession());
    ASSIGN_OR_RETURN(const int64_t oid, role_->Find(*session));
    return fmt::format("{}", oid);
  }
  void LimitRoles(const RoleLimits& limits) override { server_->tables.LimitRoles(limits); }
  Result<bool> IsLimited() override {
    ASSIGN_OR_RETURN(const auto session, Sessions(*server_, stop()).TakeSession());
    ASSIGN_OR_RETURN(const int64_t oid, role_->Find(*session));
    return IsRoleLimited(*session, oid);
  }
  std::unique_ptr<Catalog> For(Principal who) override {
    return std::make_unique<PostgresCatalog>(server_, std::move(who));
  }

  void HearStop(std::stop_token stop) override {
    const MutexLock lock(mutex_);
    stop_ = std::move(stop);
  }

  Result<DatabaseLogin> LoginForJob(int64_t job, bool on_this_machine) override {
    const DatabaseLogin own = {server_->address.url, server_->address.password};
    ASSIGN_OR_RETURN(PostgresPool::Lease connection, server_->pool.Take(stop()));
    const bool used_password = PQconnectionUsedPassword(connection->handle()) != 0;
    if (IsOfJob(RoleIn(own.url)) || (on_this_machine && !used_password)) {
      return own;
    }
    ASSIGN_OR_RETURN(const JobLogin login, NewJobLogin());
    // The server, and its log, never get the password.
    const std::unique_ptr<char, decltype(&PQfreemem)> verifier(
        PQencryptPasswordConn(connection->handle(), login.password.c_str(), login.role.c_str(),
                              "scram-sha-256"),
        &PQfreemem);
    PostgresStoreSession session(std::move(connection));
    ASSIGN_OR_RETURN(const bool can, CanMakeJobLogins(server_->tables, session));
    if (!can) {
      return own;
    }
    if (verifier == nullptr) {
      return Internal("libpq makes no SCRAM verifier for the login of a job");
    }
    RETURN_IF_ERROR(MakeJobLogin(server_->tables, session, job, login.role, verifier.get())
                        .Because(fmt::format("job {} gets a login of its own", job)));
    return DatabaseLogin{WithRole(own.url, login.role), login.password};
  }

  Status MakeTables() override {
    ASSIGN_OR_RETURN(const auto session, Sessions(*server_, stop()).TakeSession());
    return server_->tables.Create(*session);
  }
  Status AllowStaging() override {
    ASSIGN_OR_RETURN(const auto session, Sessions(*server_, stop()).TakeSession());
    ASSIGN_OR_RETURN(const int64_t oid, role_->Find(*session));
    return server_->tables.AllowStaging(*session, oid);
  }
  Status DropLeftovers() override {
    RemoveLeftoverSpools();
    ASSIGN_OR_RETURN(PostgresPool::Lease connection, server_->pool.Take());
    Status status = DropAbandonedStages(*connection);
    PostgresStoreSession session(std::move(connection));
    status.Add(DropJobLogins(server_->tables, session));
    return status;
  }
  ModelStore& models() override { return *models_; }
  ModelStore& model_types() override { return *types_; }
  JobStore& jobs() override { return *jobs_; }
  std::unique_ptr<JobStore> JobsFor(std::stop_token stop) override {
    return MakeJobStore(server_->tables,
                        SessionsThatHear([stop = std::move(stop)] { return stop; }), role_);
  }

 private:
  class Sessions final : public SqlDatabase {
   public:
    Sessions(CatalogServer& server, std::stop_token stop)
        : Sessions(server, [stop = std::move(stop)] { return stop; }) {}
    Sessions(CatalogServer& server, std::function<std::stop_token()> stop)
        : server_(server), stop_(std::move(stop)) {}
    Dialect dialect() const override { return Dialect::kPostgres; }
    Result<std::unique_ptr<SqlSession>> TakeSession() override {
      const std::stop_token stop = stop_ ? stop_() : std::stop_token();
      ASSIGN_OR_RETURN(PostgresPool::Lease connection, server_.pool.Take(stop));
      connection->HearStop(stop);
      return std::unique_ptr<SqlSession>(new PostgresStoreSession(std::move(connection)));
    }

   private:
    CatalogServer& server_;
    const std::function<std::stop_token()> stop_;
  };

  std::unique_ptr<SqlDatabase> SessionsThatHear(std::function<std::stop_token()> stop) {
    return std::make_unique<Sessions>(*server_, std::move(stop));
  }
  std::stop_token stop() {
    const MutexLock lock(mutex_);
    return stop_;
  }

  const std::shared_ptr<CatalogServer> server_;
  const Principal who_;
  const std::shared_ptr<RoleOid> role_;
  Mutex mutex_;
  std::stop_token stop_ GUARDED_BY(mutex_);
  const std::unique_ptr<ModelStore> models_;
  const std::unique_ptr<ModelStore> types_;
  const std::unique_ptr<JobStore> jobs_;
};

}  // namespace

Result<std::unique_ptr<Catalog>> OpenPostgresCatalog(const SourceUrl& url,
                                                     const std::stop_token& stop) {
  auto server = std::make_shared<CatalogServer>(url);
  std::string login;
  {
    ASSIGN_OR_RETURN(const PostgresPool::Lease connection, server->pool.Take(stop));
    login = PQuser(connection->handle());
  }
  return std::unique_ptr<Catalog>(new PostgresCatalog(std::move(server), {std::move(login)}));
}

}  // namespace sluice::catalog
