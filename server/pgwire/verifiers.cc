#include "server/pgwire/verifiers.h"

#include <fmt/core.h>
#include <libpq-fe.h>
#include <pthread.h>

#include <array>
#include <condition_variable>
#include <deque>
#include <stop_token>
#include <thread>
#include <utility>

#include "base/guarded.h"
#include "base/log.h"
#include "base/mutex.h"
#include "catalog/client_login.h"
#include "catalog/sql/setup_schema.h"
#include "catalog/sql/sql_text.h"
#include "server/pgwire/random_internal.h"

namespace sluice::server::pgwire {
namespace {

// Limit for clients that are about to log in; each waits no longer than the door's patience.
constexpr size_t kMostWaiting = 1000;

// The function is trusted only if a superuser owns it: only a superuser can let others read
// verifiers, and a function that another role put in its place is not called. The owner of its
// schema could do that at any time.
constexpr const char* kHasFunction =
    "SELECT EXISTS (SELECT FROM pg_catalog.pg_proc AS p"
    " JOIN pg_catalog.pg_roles AS r ON r.oid = p.proowner"
    " JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace"
    " JOIN pg_catalog.pg_roles AS s ON s.oid = n.nspowner"
    " WHERE p.oid = pg_catalog.to_regprocedure('sluice.scram_verifier(name)') AND r.rolsuper"
    " AND (s.rolsuper OR s.rolname = session_user)"
    " AND pg_catalog.has_function_privilege(p.oid, 'EXECUTE'))";
constexpr const char* kByFunction = "SELECT sluice.scram_verifier($1::pg_catalog.name)";
constexpr const char* kByCatalog =
    "SELECT rolpassword FROM pg_catalog.pg_authid WHERE rolname = $1";

struct ConnectionFinish {
  void operator()(PGconn* connection) const { PQfinish(connection); }
};
using Connection = std::unique_ptr<PGconn, ConnectionFinish>;
struct ResultClear {
  void operator()(PGresult* result) const { PQclear(result); }
};
using Answer = std::unique_ptr<PGresult, ResultClear>;

Status CannotRead(std::string_view why, std::string_view sqlstate) {
  return Status(Code::kUnavailable, fmt::format("cannot read the roles' verifiers: {}", why))
      .SqlState(std::string(sqlstate));
}

std::string Trimmed(const char* message) {
  std::string text = message;
  while (!text.empty() && text.back() == '\n') {
    text.pop_back();
  }
  return text;
}

class PostgresVerifiers final : public Verifiers {
 public:
  explicit PostgresVerifiers(std::string url) : url_(std::move(url)) {}

  Status Start() {
    RETURN_IF_ERROR(Connect());
    RETURN_IF_ERROR(Read("").status());
    thread_ = std::jthread([this](const std::stop_token& end) { Serve(end); });
    return OkStatus();
  }

  void Find(std::string role, Then then) override {
    {
      const MutexLock lock(mutex_);
      if (waiting_.size() < kMostWaiting) {
        waiting_.push_back({std::move(role), std::move(then)});
        came_.notify_one();
        return;
      }
    }
    then(Status(Code::kUnavailable, "too many clients are logging in").SqlState("53300"));
  }

 private:
  struct Lookup {
    std::string role;
    Then then;
  };

  Status Connect() {
    const catalog::DatabaseLogin login = catalog::WithPasswordOfFile({url_, ""});
    // Settings of the login itself cannot redirect these names.
    const std::array<const char*, 5> keys = {"dbname", "password", "connect_timeout", "options",
                                             nullptr};
    const std::array<const char*, 5> values = {login.url.c_str(), login.secret.c_str(), "5",
                                               "-c search_path= -c statement_timeout=5s", nullptr};
    connection_.reset(PQconnectdbParams(keys.data(), values.data(), 1));
    if (PQstatus(connection_.get()) != CONNECTION_OK) {
      const Status failed = CannotRead(Trimmed(PQerrorMessage(connection_.get())), "08001");
      connection_.reset();
      return failed;
    }
    by_function_ = HasFunction();
    return OkStatus();
  }

  bool HasFunction() const {
    const Answer has(PQexec(connection_.get(), kHasFunction));
    return PQresultStatus(has.get()) == PGRES_TUPLES_OK &&
           std::string_view(PQgetvalue(has.get(), 0, 0)) == "t";
  }

  // "" where the role has none.
  Result<std::string> Read(const std::string& role) {
    if (by_function_ && !HasFunction()) {  // it may be another one by now
      connection_.reset();
      return Status(Code::kPermissionDenied,
                    "sluice.scram_verifier() has changed: it is no superuser's in a schema of the "
                    "gateway's login")
          .SqlState("42501")
          .Hint("let a superuser look at schema sluice, and run what 'sluice setup' prints");
    }
    const std::array<const char*, 1> values = {role.c_str()};
    const Answer answer(PQexecParams(connection_.get(), by_function_ ? kByFunction : kByCatalog, 1,
                                     nullptr, values.data(), nullptr, nullptr, 0));
    if (PQresultStatus(answer.get()) == PGRES_TUPLES_OK) {
      const bool found = PQntuples(answer.get()) == 1 && PQgetisnull(answer.get(), 0, 0) == 0;
      return std::string(found ? PQgetvalue(answer.get(), 0, 0) : "");
    }
    const char* const state = PQresultErrorField(answer.get(), PG_DIAG_SQLSTATE);
    const char* const message = PQresultErrorField(answer.get(), PG_DIAG_MESSAGE_PRIMARY);
    if (state != nullptr && std::string_view(state) == "42501") {
      return Status(Code::kPermissionDenied,
                    "the gateway's login may not read the roles' SCRAM verifiers")
          .SqlState(state)
          .Hint(
              "let a superuser run what 'sluice setup' prints, or give the gateway --verifiers "
              "with a login that may");
    }
    return CannotRead(message != nullptr ? message : Trimmed(PQerrorMessage(connection_.get())),
                      state != nullptr ? state : "08006");
  }

  Result<ScramVerifier> Verifier(const std::string& role) {
    const bool fresh = connection_ == nullptr;
    if (fresh) {
      RETURN_IF_ERROR(Connect());
    }
    Result<std::string> text = Read(role);
    if (!text.ok() && !fresh && PQstatus(connection_.get()) != CONNECTION_OK) {
      RETURN_IF_ERROR(Connect());  // the server has restarted since
      text = Read(role);
    }
    if (!text.ok() && PQstatus(connection_.get()) != CONNECTION_OK) {
      connection_.reset();
    }
    RETURN_IF_ERROR(text.status());
    Result<ScramVerifier> verifier = ParseScramVerifier(*text);
    if (!verifier.ok()) {
      log::Info("no SCRAM verifier role={}", role);
      return MockScramVerifier(secret_, role, kPostgresScramIterations);
    }
    return verifier;
  }

  void Serve(const std::stop_token& end) {
    pthread_setname_np(pthread_self(), "pg verifiers");
    while (true) {
      Lookup lookup;
      {
        MutexLock lock(mutex_);
        came_.wait(lock.native(), end, [this]() REQUIRES(mutex_) { return !waiting_.empty(); });
        if (end.stop_requested()) {
          return;
        }
        lookup = std::move(waiting_.front());
        waiting_.pop_front();
      }
      [[maybe_unused]] const Status done =
          Guarded("reading a verifier", [&] { lookup.then(Verifier(lookup.role)); });
    }
  }

  const std::string url_;
  const std::string secret_ = RandomToken();
  Connection connection_;  // used by the thread, once that runs
  bool by_function_ = false;
  Mutex mutex_;
  std::condition_variable_any came_;
  std::deque<Lookup> waiting_ GUARDED_BY(mutex_);
  std::jthread thread_;  // last: ends before the members that it uses are destroyed
};

}  // namespace

Result<std::unique_ptr<Verifiers>> Verifiers::Open(const std::string& url) {
  auto verifiers = std::make_unique<PostgresVerifiers>(url);
  RETURN_IF_ERROR(verifiers->Start());
  return std::unique_ptr<Verifiers>(std::move(verifiers));
}

std::string VerifierFunction(std::string_view role) {
  const std::string gateway = catalog::QuoteName(role);
  return fmt::format(
      R"sql(-- For a gateway with --auth scram: lets its login, {0}, read what PostgreSQL keeps of the passwords of
-- roles that are no superusers. Run it as a superuser, in the database of the gateway's --source.
BEGIN;
{1}
CREATE OR REPLACE FUNCTION sluice.scram_verifier(role name) RETURNS text
  LANGUAGE sql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp
  AS $$ SELECT rolpassword FROM pg_catalog.pg_authid
        WHERE rolname = role AND NOT rolsuper AND rolpassword LIKE 'SCRAM-SHA-256$%' $$;
REVOKE ALL ON FUNCTION sluice.scram_verifier(name) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION sluice.scram_verifier(name) TO {0};
COMMIT;
)sql",
      gateway, catalog::MakeCatalogSchema(role));
}

}  // namespace sluice::server::pgwire
