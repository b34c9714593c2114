#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/status.h"
#include "catalog/job_store.h"
#include "catalog/model_store.h"

// What Sluice keeps in a database beside the user's data: models, jobs, and which tables it wrote.
namespace sluice::catalog {

class DataSource;

// Who asks for models and jobs: a role of the database. "": a database without roles (SQLite),
// where everything belongs to whoever opens the file.
struct Principal {
  std::string role;
};

// The catalog of one database, on connections of Sluice's own login (PostgreSQL: with an empty
// search_path), which never see a text that a user wrote. The user's data is DataSource's.
//
// Models and jobs have owners: roles, by their OIDs, so that a role keeps what it has under another
// name, and its name alone gives it to nobody else. Of a role's models and jobs its members see,
// use and change everything; others see and use a model after GRANT USAGE. What may not be seen
// does not exist (42704); what may be used and not changed is 42501. PostgreSQL says the same to
// plain SELECTs on the tables, by row-level security. Thread-safe.
class Catalog {
 public:
  virtual ~Catalog() = default;

  // "postgresql" or "sqlite".
  virtual std::string_view dialect() const = 0;
  // The URL it was opened with, without the password, and the secret beside it, which another
  // process of Sluice's own needs to open the same; it travels only through inherited descriptors
  // and Kubernetes Secrets, and never to a process that reads for a user.
  virtual const std::string& url() const = 0;
  virtual std::string secret() const = 0;

  // Who asks here; of a catalog as it was opened, the login.
  virtual const Principal& principal() const = 0;
  // What stays the same of a role that gets another name (its OID), for names of folders; "": there
  // are no roles.
  virtual Result<std::string> PrincipalId() = 0;
  // The same catalog for a session of `who`. This one outlives it.
  virtual std::unique_ptr<Catalog> For(Principal who) = 0;

  // What ends whatever the stores of models wait for (57014): the statement's stop. Of a session's
  // own catalog.
  virtual void HearStop(std::stop_token stop) = 0;

  // Makes the tables, where they are not there yet, in a transaction of its own. The stores do so
  // themselves when they write; whoever writes a result table without them calls this first.
  virtual Status MakeTables() = 0;
  virtual ModelStore& models() = 0;
  // The model types that users bring, kept as models are, with the same rights: ModelVersion::type
  // is the language, the weights are the source.
  virtual ModelStore& model_types() = 0;
  // Hears no stop: what becomes of a job is written down although its statement was cancelled.
  virtual JobStore& jobs() = 0;
  // The same jobs for one who may give up: whatever waits there (for locks of others, too) ends
  // when `stop` is requested (57014). The catalog outlives it.
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
// The user's data with one login, and the catalog, perhaps with another, as a process that works
// for a gateway opens them.
struct DatabaseLogin {
  std::string url, secret;
};
Result<Database> OpenDatabase(const DatabaseLogin& source, const DatabaseLogin& catalog,
                              const std::stop_token& stop);

}  // namespace sluice::catalog
