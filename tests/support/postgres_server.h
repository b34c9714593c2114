#pragma once

#include <memory>
#include <string>

namespace sluice::testing {

// A role that has to give a password, like its members; all others are trusted. (If
// SLUICE_TEST_POSTGRES names a server, its pg_hba.conf needs such a line, or the test is skipped.)
inline constexpr const char* kPasswordRole = "needs_password";

// A PostgreSQL server for tests: the one in SLUICE_TEST_POSTGRES, or one started for this process
// on a free port, in a temporary directory, and stopped at its end. With SLUICE_TEST_POSTGRES=none
// there is none.
class PostgresServer {
 public:
  // nullptr if there is neither; the reason goes to standard error.
  static PostgresServer* Get();
  // Another one, for a test that restarts it, or that needs `rules` at the head of pg_hba.conf (one
  // line; `local` connections and those of `postgres` are trusted). nullptr: no PostgreSQL.
  static std::unique_ptr<PostgresServer> StartOwn(const std::string& rules);
  ~PostgresServer();

  // postgresql://postgres@host:port/ without a database.
  const std::string& url_prefix() const { return url_prefix_; }
  // `mode` of pg_ctl: fast, immediate. Only of a server that StartOwn has started.
  bool Restart(const std::string& mode) const;

 private:
  PostgresServer() = default;
  static std::unique_ptr<PostgresServer> GivenOrOwn();

  std::string url_prefix_;
  std::string directory_;  // "" if the server is not ours
};

// A new database for one test; dropped at the end.
class PostgresTestDatabase {
 public:
  PostgresTestDatabase();
  ~PostgresTestDatabase();
  PostgresTestDatabase(const PostgresTestDatabase&) = delete;
  PostgresTestDatabase& operator=(const PostgresTestDatabase&) = delete;

  // "" if there is no server: then skip the test.
  const std::string& url() const { return url_; }

 private:
  std::string name_;
  std::string url_;
};

}  // namespace sluice::testing
