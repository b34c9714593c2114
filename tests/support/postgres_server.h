#pragma once

#include <memory>
#include <string>

namespace sluice::testing {

// A role that has to give a password, like its members; all others are trusted. (If
// SLUICE_TEST_POSTGRES names a server, its pg_hba.conf needs such a line, or the test is skipped.)
inline constexpr const char* kPasswordRole = "needs_password";

// A PostgreSQL server for tests: the one in SLUICE_TEST_POSTGRES, or one started for this process
// on a free port, in a temporary directory, and stopped at its end.
class PostgresServer {
 public:
  // nullptr if there is neither; the reason goes to standard error.
  static PostgresServer* Get();
  ~PostgresServer();

  // postgresql://postgres@host:port/ without a database.
  const std::string& url_prefix() const { return url_prefix_; }

 private:
  PostgresServer() = default;
  static std::unique_ptr<PostgresServer> Start();

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
