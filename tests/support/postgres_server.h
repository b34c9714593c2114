#pragma once

#include <memory>
#include <string>

namespace sluice::testing {

// A role whose password the server asks for, as it does of its members; all others are trusted. (A
// server that SLUICE_TEST_POSTGRES names has such a line in its pg_hba.conf, or the test is
// skipped.)
inline constexpr const char* kPasswordRole = "needs_password";

// A PostgreSQL for tests: the one that SLUICE_TEST_POSTGRES names, or one that is started for this
// process on a free port, in a temporary directory, and stopped at its end.
class PostgresServer {
 public:
  // nullptr where there is neither; the reason goes to standard error.
  static PostgresServer* Get();
  ~PostgresServer();

  // postgresql://postgres@host:port/ without a database.
  const std::string& url_prefix() const { return url_prefix_; }

 private:
  PostgresServer() = default;
  static std::unique_ptr<PostgresServer> Start();

  std::string url_prefix_;
  std::string directory_;  // "" when the server is somebody else's
};

// A database of its own for one test; dropped at the end.
class PostgresTestDatabase {
 public:
  PostgresTestDatabase();
  ~PostgresTestDatabase();
  PostgresTestDatabase(const PostgresTestDatabase&) = delete;
  PostgresTestDatabase& operator=(const PostgresTestDatabase&) = delete;

  // "" where there is no server: skip the test then.
  const std::string& url() const { return url_; }

 private:
  std::string name_;
  std::string url_;
};

}  // namespace sluice::testing
