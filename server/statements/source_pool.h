#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "server/config/config.h"
#include "server/config/role_limits.h"
#include "server/statements/audit.h"
#include "server/statements/login_throttle.h"
#include "server/statements/role_use.h"

namespace sluice::catalog {
class Catalog;
class DataSource;
}  // namespace sluice::catalog

namespace sluice::server {

// A client's login. Under Auth::kTrust the password is not checked, and without a role it is the
// gateway's own login.
struct Login {
  std::string role;
  std::string password;       // or a ticket
  std::string address;        // failures are counted for this address; "": not counted
  std::string database = {};  // on the same server; "": the URL's own
  // Where the ticket is used to log in: a Unix socket as in catalog::SessionLink. "": it is a
  // password.
  std::string desk_host = {};
  std::string desk_port = {};
  bool proven = false;  // a door has checked the login; only if the database itself has no users
};

// Whether it is the user's password, for a database that has no users.
using PasswordCheck =
    std::function<Result<bool>(const std::string& role, const std::string& password)>;

struct PoolBounds {
  RoleLimits limits = {};
  int64_t places = 24;  // of scripts, that one role may take
  // The databases of the server that may have a catalog; empty: all that are no templates.
  std::set<std::string> databases = {};
};

// Database sessions for a gateway's scripts: data sources of one server, each logged in as its
// user, and the catalog of each database, with the URL's own login. A data source has one session
// connection (for BEGIN ... COMMIT), so two scripts never share one. Idle ones are kept for a
// while, because a login costs milliseconds, and reused only for the same role and password.
// Thread-safe.
class SourcePool {
 private:
  struct Opened {
    std::string login;  // a digest of role and password
    std::unique_ptr<catalog::DataSource> source;
    std::unique_ptr<catalog::Catalog> catalog;  // the user's
    std::string role_id;  // of the role that has logged in; "": the database has none
    bool limited = false;
    TimePoint idle_since{0};
    TimePoint logged_in{0};
  };

 public:
  // A script's database; returned to the pool on destruction.
  class Lease {
   public:
    Lease(SourcePool* pool, std::unique_ptr<Opened> opened);
    ~Lease();
    Lease(Lease&& other) noexcept;
    Lease& operator=(Lease&&) = delete;
    catalog::DataSource& source() const { return *opened_->source; }
    // That user's models and jobs.
    catalog::Catalog& catalog() const { return *opened_->catalog; }
    // Whether limits concern the user (RoleLimits).
    bool limited() const { return opened_->limited; }
    // Those of the role as which a session of the user begins (ALTER ROLE ... SET role).
    Result<std::unique_ptr<catalog::Catalog>> ActingCatalog() const;
    // The script may have left an open transaction or session settings: they are undone before the
    // source is reused.
    void MarkUsedDirectly() { used_directly_ = true; }

   private:
    SourcePool* pool_;
    std::unique_ptr<Opened> opened_;
    bool used_directly_ = false;
  };

  // Opens the catalog with the URL's own login, so that a wrong URL is reported at start.
  static Result<std::unique_ptr<SourcePool>> Open(
      const std::string& url, Auth auth, PasswordCheck check = nullptr,
      std::unique_ptr<Audit> audit = std::make_unique<Audit>(), PoolBounds bounds = {});
  ~SourcePool();

  // `url` as the user gave it, without the password.
  const std::string& url() const { return shown_url_; }
  Auth auth() const { return auth_; }
  // Whether each user has a login of their own in the database.
  bool logs_in() const;
  // The catalog under the gateway's own login.
  catalog::Catalog& catalog() const { return *catalog_; }
  // Counts failed logins at all doors.
  LoginThrottle& throttle() { return throttle_; }
  // Counts what roles take at all doors.
  RoleUse& roles() { return roles_; }
  // Records what happens at all doors.
  Audit& audit() { return *audit_; }
  // The catalogs of the databases that users have logged in to lately, by database name; "": the
  // URL's own.
  std::vector<std::pair<std::string, std::shared_ptr<catalog::Catalog>>> Catalogs() const
      EXCLUDES(mutex_);
  // The catalog of a database, with the URL's own login; "": the URL's database. 42501: it is to
  // have none.
  Result<std::shared_ptr<catalog::Catalog>> CatalogOf(const std::string& database,
                                                      const std::stop_token& stop) EXCLUDES(mutex_);
  // 28P01 and 28000: the database refuses the login, or it is too early for another try; 42501: the
  // database is to have no catalog. `stop` ends the waiting for a server (57014).
  Result<Lease> Acquire(const Login& login, const std::stop_token& stop = {});

 private:
  SourcePool(std::string url, Auth auth, PasswordCheck check,
             std::unique_ptr<catalog::Catalog> catalog, std::unique_ptr<Audit> audit,
             PoolBounds bounds);
  void LimitRoles(catalog::Catalog& catalog) const;
  Status RecordLogin(const Login& login, const Status& outcome);
  Status CheckUser(const Login& login, LoginThrottle::Attempt* attempt);
  Result<LoginThrottle::Attempt> Admit(const Login& login, const std::stop_token& stop);
  Status RefuseLogin(const Login& login, LoginThrottle::Attempt* attempt);
  Status RefuseLogin(const Login& login, LoginThrottle::Attempt* attempt, Status why);
  // Only one that logged in recently, so that the server checks each password again and again.
  std::unique_ptr<Opened> TakeIdle(const std::string& login) EXCLUDES(mutex_);
  Result<std::unique_ptr<Opened>> OpenFor(const Login& login, LoginThrottle::Attempt* attempt,
                                          const std::stop_token& stop);
  Result<std::string> RoleId(const std::string& role);
  void Release(std::unique_ptr<Opened> opened, bool used_directly);
  void CloseIdle(const std::stop_token& end);

  const std::string url_;
  const std::string shown_url_;
  const Auth auth_;
  const PasswordCheck check_;
  const std::unique_ptr<Audit> audit_;
  const std::shared_ptr<catalog::Catalog> catalog_;
  const SteadyClock clock_;
  LoginThrottle throttle_{clock_};
  const PoolBounds bounds_;
  RoleUse roles_;
  mutable Mutex mutex_;
  // Catalogs of the other databases. One that nobody has logged in to for a while is closed, so
  // that its connections are in nobody's way (DROP DATABASE, CREATE DATABASE ... TEMPLATE).
  struct OtherCatalog {
    std::shared_ptr<catalog::Catalog> catalog;
    TimePoint used{0};
  };
  std::map<std::string, OtherCatalog> catalogs_ GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Opened>> idle_ GUARDED_BY(mutex_);  // the oldest first
  std::condition_variable_any idle_changed_;
  std::jthread closer_;  // last: ends before the members it uses go
};

}  // namespace sluice::server
