#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/status.h"
#include "catalog/job_store.h"
#include "catalog/model_store.h"
#include "catalog/role_limits.h"

// Sluice's own data in a database, stored next to the user's: models, jobs, and which tables it
// wrote.
namespace sluice::catalog {

class DataSource;

// The role on whose behalf models and jobs are accessed. "": a database without roles (SQLite),
// where everything belongs to everyone who can open the file.
struct Principal {
  std::string role;
};

// With which to log in: a URL without its password, and the password.
struct DatabaseLogin {
  std::string url, secret;
};

// The catalog of one database, on connections of Sluice's own login (PostgreSQL: with an empty
// search_path), which never run text that a user wrote. DataSource accesses the user's data.
//
// Models and jobs have owners: roles, identified by OID, so that a renamed role keeps what it owns,
// and another role that gets its old name does not. Members of the owner may see, use and change
// everything; others may see and use a model after GRANT USAGE, and see its plan and statement
// after GRANT INSPECT. An object that may not be seen appears not to exist (42704); changing one
// that may only be used is 42501. On PostgreSQL row-level security enforces the same for plain
// SELECTs on the tables. Thread-safe.
class Catalog {
 public:
  virtual ~Catalog() = default;

  // "postgresql" or "sqlite".
  virtual std::string_view dialect() const = 0;
  // The URL it was opened with, without the password, and the secret that another process of
  // Sluice's own needs in addition to open the same; the secret is passed on only through inherited
  // descriptors and Kubernetes Secrets, and never to a process that reads for a user.
  virtual const std::string& url() const = 0;
  virtual std::string secret() const = 0;

  // On whose behalf it is used; for a catalog as opened, the login.
  virtual const Principal& principal() const = 0;
  // An identification of the role that survives renaming (its OID), for names of folders; "": the
  // database has no roles.
  virtual Result<std::string> PrincipalId() = 0;
  // Limits what roles store from now on (ModelStore::CheckMayPut), for the catalogs of For, too.
  // Call before other threads use it.
  virtual void LimitRoles(const RoleLimits& limits) = 0;
  // Whether limits concern the principal: not if it is a superuser, or the catalog's own login.
  virtual Result<bool> IsLimited() = 0;
  // The same catalog for a session of `who`. This object must outlive it.
  virtual std::unique_ptr<Catalog> For(Principal who) = 0;

  // `stop` ends all waiting of the model stores (57014): the statement's stop. For a session's own
  // catalog.
  virtual void HearStop(std::stop_token stop) = 0;

  // The login with which the processes of a job open the catalog: a role of the job's own, if the
  // database makes such roles for this login (somebody has run `sluice setup`). It may write the
  // rows of that job and, for a training, its model, and read what the job's owner sees, nothing
  // else. An earlier role of the job ends; DropLeftovers drops it ten minutes after the job's end.
  // Otherwise, and for processes `on_this_machine` if the server asks this login for no password,
  // it is this login.
  virtual Result<DatabaseLogin> LoginForJob(int64_t job, bool on_this_machine) = 0;

  // Creates missing tables in a transaction of its own. The stores do so themselves when they
  // write; code that writes a result table without them calls this first.
  virtual Status MakeTables() = 0;
  // Lets the principal stage rows in the database (PostgreSQL's schema sluice_stage), if the
  // catalog's login may let it; creates missing tables. Call before a statement of the principal
  // reads rows that it may have to read twice.
  virtual Status AllowStaging() = 0;
  // Removes what ended statements and processes, of any user, have left behind: copies of a
  // select's rows (a table or a file), tables that were not completed, logins of jobs, and SQLite's
  // write-ahead log once nobody reads it.
  virtual Status DropLeftovers() = 0;
  virtual ModelStore& models() = 0;
  // The model types that users define, stored like models and with the same rights:
  // ModelVersion::type is the language, the weights are the source.
  virtual ModelStore& model_types() = 0;
  // Not affected by HearStop: the end of a job is recorded although its statement was cancelled.
  virtual JobStore& jobs() = 0;
  // The same jobs, for a caller that may give up: all waiting (for locks of others, too) ends when
  // `stop` is requested (57014). The catalog must outlive it.
  virtual std::unique_ptr<JobStore> JobsFor(std::stop_token stop) = 0;
};

// As OpenDataSource; every call for sqlite::memory: is a new, empty database.
Result<std::unique_ptr<Catalog>> OpenCatalog(std::string_view url, std::string_view secret = "",
                                             std::stop_token stop = {});

// A database whose data and catalog are opened with one login.
struct Database {
  std::unique_ptr<DataSource> source;
  std::unique_ptr<Catalog> catalog;
};
Result<Database> OpenDatabase(std::string_view url, std::string_view secret = "",
                              std::stop_token stop = {});
// The user's data with one login and the catalog with a possibly different one, as opened by a
// process that works for a gateway.
Result<Database> OpenDatabase(const DatabaseLogin& source, const DatabaseLogin& catalog,
                              const std::stop_token& stop);

}  // namespace sluice::catalog
