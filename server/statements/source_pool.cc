#include "server/statements/source_pool.h"

#include <fmt/core.h>
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/guarded.h"
#include "base/log.h"
#include "base/same_secret.h"
#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "catalog/key_login.h"
#include "catalog/sha256.h"
#include "catalog/source_url.h"
#include "server/statements/login_name.h"

namespace sluice::server {
namespace {

// Kept for the next scripts, for all users together; more would hold idle database connections.
constexpr size_t kMaxIdle = 8;
// For this long, a login remains valid after its password was changed or its role locked.
constexpr double kIdleSeconds = 60;
constexpr std::chrono::seconds kLookForIdle{5};

// Resets a source to the state after opening. False: discard it. SQLite cannot undo temporary
// tables, ATTACH and PRAGMA, and opening a file is cheap.
bool Reset(catalog::DataSource& source) {
  return source.dialect() != "sqlite" && source.Execute("ROLLBACK", nullptr, {}).ok() &&
         source.Execute("DISCARD ALL", nullptr, {}).ok();
}

// Identifies a login's role and password, without storing the password.
std::string DigestOf(const Login& login) {
  catalog::Sha256 digest;
  digest.Add(fmt::format("{}:{}", login.role.size(), login.role));
  digest.Add(fmt::format("{}:{}", login.database.size(), login.database));
  digest.Add(login.password);
  return digest.Hex();
}

// Sessions of one role at a file, which has no server that would limit them.
constexpr int64_t kSessionsOfFile = 100;

class FirstCell final : public catalog::RowReceiver {
 public:
  Status Header(const Schema& /*schema*/) override { return OkStatus(); }
  Status Rows(const RowBatch& batch) override {
    if (batch.rows > 0) {
      value = batch.columns.at(0).ValueAt(0);
    }
    return OkStatus();
  }
  Value value;
};

// Of the server: its max_connections.
Result<int64_t> MostConnections(catalog::DataSource& source) {
  FirstCell most;
  RETURN_IF_ERROR(
      source
          .Execute("SELECT pg_catalog.current_setting('max_connections')::pg_catalog.int8", &most,
                   {})
          .status());
  const auto* const connections = std::get_if<int64_t>(&most.value);
  return connections != nullptr ? Result<int64_t>(*connections)
                                : Internal("the server does not say how many connections it takes");
}

// One role is to leave some of the server's connections to the others. A training in one process
// holds about seven, the gateway's own included, and its session one.
Status AddDefaults(catalog::DataSource& source, PoolBounds* bounds) {
  int64_t sessions = kSessionsOfFile;
  int64_t jobs = bounds->places;
  if (source.dialect() != "sqlite") {
    ASSIGN_OR_RETURN(const int64_t connections, MostConnections(source));
    sessions = std::max<int64_t>(connections / 2, 1);
    jobs = std::min(jobs, std::max<int64_t>(connections / 10, 1));
  }
  RoleLimits& limits = bounds->limits;
  limits.sessions = limits.sessions.value_or(sessions);
  limits.jobs = limits.jobs.value_or(jobs);
  return OkStatus();
}

Status WantsLogin(std::string_view what) {
  return Status(Code::kPermissionDenied, fmt::format("this gateway asks for {}", what))
      .SqlState("28000")
      .Hint(
          "log in as a role of the database: sluice sql --gateway takes --user, and the password "
          "from PGPASSWORD or ~/.pgpass");
}

}  // namespace

SourcePool::Lease::Lease(SourcePool* pool, std::unique_ptr<Opened> opened)
    : pool_(pool), opened_(std::move(opened)) {}

SourcePool::Lease::Lease(Lease&& other) noexcept
    : pool_(other.pool_), opened_(std::move(other.opened_)), used_directly_(other.used_directly_) {}

SourcePool::Lease::~Lease() {
  if (opened_ != nullptr) {
    // May run during stack unwinding.
    [[maybe_unused]] const Status released = Guarded("giving a data source back", [this] {
      pool_->Release(std::move(opened_), used_directly_);
    });
  }
}

Result<std::unique_ptr<catalog::Catalog>> SourcePool::Lease::ActingCatalog() const {
  ASSIGN_OR_RETURN(std::string role, source().ActingRole({}));
  return catalog().For({std::move(role)});
}

Result<std::unique_ptr<SourcePool>> SourcePool::Open(const std::string& url, Auth auth,
                                                     PasswordCheck check,
                                                     std::unique_ptr<Audit> audit,
                                                     PoolBounds bounds) {
  if (url == "sqlite:" || url.rfind("sqlite::memory:", 0) == 0) {
    return InvalidArgument("a gateway cannot serve an in-memory database")
        .Hint("give a file: --source sqlite:my.db");
  }
  ASSIGN_OR_RETURN(catalog::Database own, catalog::OpenDatabase(url));
  if (own.source->dialect() == "sqlite" && auth == Auth::kPassword) {
    return Unimplemented("a SQLite database has no users that it could check the passwords of")
        .Hint("--auth scram checks those of --password-file");
  }
  const Status dropped = own.source->DropLeftovers();  // tables left by a gateway that was killed
  if (!dropped.ok()) {
    log::Warn("what is left of killed processes stays: {}", dropped.ToString());
  }
  RETURN_IF_ERROR(AddDefaults(*own.source, &bounds));
  return std::unique_ptr<SourcePool>(new SourcePool(
      url, auth, std::move(check), std::move(own.catalog), std::move(audit), std::move(bounds)));
}

SourcePool::SourcePool(std::string url, Auth auth, PasswordCheck check,
                       std::unique_ptr<catalog::Catalog> catalog, std::unique_ptr<Audit> audit,
                       PoolBounds bounds)
    : url_(std::move(url)),
      shown_url_(catalog::WithoutSecrets(catalog->url())),
      auth_(auth),
      check_(std::move(check)),
      audit_(std::move(audit)),
      catalog_(std::move(catalog)),
      bounds_(std::move(bounds)),
      roles_({bounds_.limits.sessions.value_or(0), bounds_.limits.jobs.value_or(0),
              bounds_.limits.statements}),
      closer_([this](const std::stop_token& end) { CloseIdle(end); }) {
  LimitRoles(*catalog_);
}

SourcePool::~SourcePool() = default;

// Where nobody logs in, all clients are the gateway's own login.
void SourcePool::LimitRoles(catalog::Catalog& catalog) const {
  if (auth_ != Auth::kTrust || catalog.dialect() != "sqlite") {
    catalog.LimitRoles({bounds_.limits.versions, bounds_.limits.stored_mebibytes << 20});
  }
}

Result<SourcePool::Lease> SourcePool::Acquire(const Login& login, const std::stop_token& stop) {
  const bool asks = auth_ != Auth::kTrust && !login.proven;
  if (asks && (login.role.empty() || login.password.empty())) {
    // Without a password libpq would use one of the gateway's own.
    const Status unnamed =
        WantsLogin(login.role.empty() ? "a user and a password"
                                      : fmt::format("the password of \"{}\"", login.role));
    RETURN_IF_ERROR(RecordLogin(login, unnamed));
    return unnamed;
  }
  if (const Status named = CheckLoginNames(login.role, login.database);
      catalog_->dialect() != "sqlite" && !named.ok()) {
    RETURN_IF_ERROR(RecordLogin(login, named));
    return named;
  }
  LoginThrottle::Attempt attempt;
  if (asks && login.desk_host.empty()) {  // before it shows whether the password is that of others
    ASSIGN_OR_RETURN(attempt, Admit(login, stop));
  }
  const std::string digest = login.role.empty() ? "" : DigestOf(login);
  while (std::unique_ptr<Opened> idle = TakeIdle(digest)) {
    const Result<std::string> id = RoleId(login.role);
    if (id.ok() && *id == idle->role_id) {
      attempt.Succeeded();
      return Lease(this, std::move(idle));
    }
  }
  auto made = OpenFor(login, &attempt, stop);
  if (asks && made.status().sqlstate().starts_with("08")) {  // of no concern to a stranger
    log::Warn("nobody can log in: {}", made.status().ToString());
    return Unavailable("the database cannot be reached").SqlState(made.status().sqlstate());
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Opened> opened, std::move(made));
  ASSIGN_OR_RETURN(opened->role_id, RoleId(login.role));
  return Lease(this, std::move(opened));
}

// A name may have become another role's since the login.
Result<std::string> SourcePool::RoleId(const std::string& role) {
  return role.empty() ? Result<std::string>(std::string()) : catalog_->For({role})->PrincipalId();
}

Result<std::unique_ptr<SourcePool::Opened>> SourcePool::OpenFor(const Login& login,
                                                                LoginThrottle::Attempt* attempt,
                                                                const std::stop_token& stop) {
  auto opened = std::make_unique<Opened>();
  opened->logged_in = clock_.Now();
  if (catalog_->dialect() == "sqlite") {
    RETURN_IF_ERROR(CheckUser(login, attempt));
    opened->login = login.role.empty() ? "" : DigestOf(login);
    ASSIGN_OR_RETURN(catalog::Database database, catalog::OpenDatabase(url_, "", stop));
    opened->source = std::move(database.source);
    opened->source->GuardSession();
    opened->catalog = std::move(database.catalog);
    LimitRoles(*opened->catalog);
    opened->limited = auth_ != Auth::kTrust;
    return opened;
  }
  if (auth_ == Auth::kTrust && login.role.empty()) {
    ASSIGN_OR_RETURN(opened->source, catalog::OpenDataSource(url_, "", stop));
    opened->catalog = catalog_->For(catalog_->principal());
    return opened;
  }
  const std::string url =
      login.database.empty() ? url_ : catalog::WithDatabase(url_, login.database);
  ASSIGN_OR_RETURN(const std::shared_ptr<catalog::Catalog> own, CatalogOf(login.database, stop));
  opened->login = DigestOf(login);
  opened->catalog = own->For({login.role});
  // Once the role has logged in: nobody else is told whether there is one of that name.
  const auto with_limits = [&opened]() -> Result<std::unique_ptr<Opened>> {
    ASSIGN_OR_RETURN(opened->limited, opened->catalog->IsLimited());
    return std::move(opened);
  };
  if (auth_ == Auth::kTrust) {
    ASSIGN_OR_RETURN(opened->source,
                     catalog::OpenDataSource(catalog::WithRole(url, login.role), "", stop));
    return with_limits();
  }
  if (!login.desk_host.empty()) {
    ASSIGN_OR_RETURN(opened->source, catalog::OpenDataSourceAs(
                                         catalog::WithSocket(url, login.desk_host, login.desk_port),
                                         login.role, login.password, stop));
    return with_limits();
  }
  if (catalog::IsKeySecret(login.password)) {  // which no client has
    return RefuseLogin(login, attempt);
  }
  auto source = catalog::OpenDataSourceAs(url, login.role, login.password, stop);
  if (!source.ok()) {
    const std::string state = source.status().sqlstate();
    if (!state.starts_with("28")) {
      return source.status();
    }
    return state == "28P01" ? RefuseLogin(login, attempt)
                            : RefuseLogin(login, attempt, source.status());
  }
  attempt->Succeeded();
  RETURN_IF_ERROR(RecordLogin(login, OkStatus()));
  opened->source = std::move(source).value();
  return with_limits();
}

bool SourcePool::logs_in() const {
  return auth_ != Auth::kTrust && catalog_->dialect() != "sqlite";
}

// For a database without users: in any case the gateway opens its file.
Status SourcePool::CheckUser(const Login& login, LoginThrottle::Attempt* attempt) {
  if (auth_ == Auth::kTrust || login.proven) {
    return OkStatus();
  }
  const Result<bool> right = check_(login.role, login.password);
  if (!right.ok()) {  // details are not for clients that have not logged in
    log::Warn("nobody can log in: {}", right.status().ToString());
    return Status(Code::kUnavailable, "the gateway cannot check passwords").SqlState("58030");
  }
  if (!*right) {
    return RefuseLogin(login, attempt);
  }
  attempt->Succeeded();
  return RecordLogin(login, OkStatus());
}

Result<LoginThrottle::Attempt> SourcePool::Admit(const Login& login, const std::stop_token& stop) {
  auto attempt = throttle_.AwaitTurn(login.address, login.role, stop);
  if (!attempt.ok()) {
    RETURN_IF_ERROR(RecordLogin(login, attempt.status()));
  }
  return attempt;
}

Status SourcePool::RefuseLogin(const Login& login, LoginThrottle::Attempt* attempt) {
  // The server's own message, without the place.
  return RefuseLogin(
      login, attempt,
      Status(Code::kPermissionDenied,
             fmt::format("password authentication failed for user \"{}\"", login.role))
          .SqlState("28P01"));
}

Status SourcePool::RefuseLogin(const Login& login, LoginThrottle::Attempt* attempt, Status why) {
  attempt->Failed();
  RETURN_IF_ERROR(RecordLogin(login, why));
  return why;
}

// Those without an address have logged in at the PostgreSQL door, which has recorded it.
Status SourcePool::RecordLogin(const Login& login, const Status& outcome) {
  return login.address.empty()
             ? OkStatus()
             : audit_->Login({"grpc", login.role, login.address, login.database}, outcome);
}

Result<std::shared_ptr<catalog::Catalog>> SourcePool::CatalogOf(const std::string& database,
                                                                const std::stop_token& stop) {
  if (database.empty()) {
    return catalog_;
  }
  if (!bounds_.databases.empty() && !bounds_.databases.contains(database)) {
    return Status(Code::kPermissionDenied,
                  fmt::format("this gateway keeps no models and jobs in database \"{}\"", database))
        .SqlState("42501")
        .Hint("its operator lists the databases that have them (--databases)");
  }
  {
    const MutexLock lock(mutex_);
    const auto known = catalogs_.find(database);
    if (known != catalogs_.end()) {
      known->second.used = clock_.Now();
      return known->second.catalog;
    }
  }
  auto opened = catalog::OpenCatalog(catalog::WithDatabase(url_, database), "", stop);
  RETURN_IF_ERROR(opened.status().Because(
      fmt::format("the gateway's own login keeps models and jobs in database \"{}\"", database)));
  const MutexLock lock(mutex_);
  OtherCatalog& other = catalogs_[database];
  if (other.catalog == nullptr) {
    other.catalog = *std::move(opened);
    LimitRoles(*other.catalog);
  }
  other.used = clock_.Now();
  idle_changed_.notify_one();
  return other.catalog;
}

std::vector<std::pair<std::string, std::shared_ptr<catalog::Catalog>>> SourcePool::Catalogs()
    const {
  std::vector<std::pair<std::string, std::shared_ptr<catalog::Catalog>>> all{{"", catalog_}};
  const MutexLock lock(mutex_);
  for (const auto& [database, other] : catalogs_) {
    all.emplace_back(database, other.catalog);
  }
  return all;
}

std::unique_ptr<SourcePool::Opened> SourcePool::TakeIdle(const std::string& login) {
  std::vector<std::unique_ptr<Opened>> old;  // destroyed outside the lock
  const MutexLock lock(mutex_);
  const TimePoint now = clock_.Now();
  while (true) {
    const auto found = std::find_if(idle_.rbegin(), idle_.rend(), [&](const auto& idle) {
      return SameSecret(idle->login, login);
    });
    if (found == idle_.rend()) {
      return nullptr;
    }
    std::unique_ptr<Opened> taken = std::move(*found);
    idle_.erase(std::next(found).base());
    if (login.empty() || SecondsBetween(taken->logged_in, now) < kIdleSeconds) {
      return taken;
    }
    old.push_back(std::move(taken));
  }
}

void SourcePool::Release(std::unique_ptr<Opened> opened, bool used_directly) {
  if (used_directly && !Reset(*opened->source)) {
    log::Debug("source not reused url={}", shown_url_);
    return;
  }
  opened->idle_since = clock_.Now();
  std::unique_ptr<Opened> oldest;  // destroyed outside the lock
  const MutexLock lock(mutex_);
  idle_.push_back(std::move(opened));
  if (idle_.size() > kMaxIdle) {
    oldest = std::move(idle_.front());
    idle_.erase(idle_.begin());
  }
  idle_changed_.notify_one();
}

void SourcePool::CloseIdle(const std::stop_token& end) {
  pthread_setname_np(pthread_self(), "idle sources");
  while (!end.stop_requested()) {
    std::vector<std::unique_ptr<Opened>> old;
    std::vector<std::shared_ptr<catalog::Catalog>> unused;
    {
      MutexLock lock(mutex_);
      idle_changed_.wait(lock.native(), end, [this]() REQUIRES(mutex_) {
        return !idle_.empty() || !catalogs_.empty();
      });
      idle_changed_.wait_for(lock.native(), end, kLookForIdle, [] { return false; });
      const TimePoint now = clock_.Now();
      while (!idle_.empty() && SecondsBetween(idle_.front()->idle_since, now) >= kIdleSeconds) {
        old.push_back(std::move(idle_.front()));
        idle_.erase(idle_.begin());
      }
      std::erase_if(catalogs_, [&](const auto& entry) {
        const bool expired = SecondsBetween(entry.second.used, now) >= kIdleSeconds;
        if (expired) {
          unused.push_back(entry.second.catalog);  // closed outside the lock
        }
        return expired;
      });
    }
  }
}

}  // namespace sluice::server
