#pragma once

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "tests/server/sluice_process.h"
#include "tests/support/postgres_server.h"

namespace sluice {

// Runs until it is ended.
inline constexpr const char* kLongTraining =
    "SELECT a.x, b.x AS z, a.y FROM points a, points b, generate_series(1, 30) TO TRAIN "
    "DNNClassifier WITH model.hidden_units=[64, 64], train.epoch=200 LABEL y INTO long_one";

// The PostgreSQL door of a gateway process, in front of a real PostgreSQL with one table of points.
class DoorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (database_.url().empty()) {
      GTEST_SKIP() << "no PostgreSQL";
    }
    std::filesystem::create_directories(home_);
    ASSERT_EQ(Direct("CREATE TABLE points AS SELECT i::float8 AS x, i % 2 AS y"
                     " FROM generate_series(1, 300) AS i")
                  .exit_code,
              0);
  }
  void TearDown() override { std::filesystem::remove_all(home_); }

  // `options`: of the gateway.
  // `source` "": the database's own URL. `address`: a further one for the door.
  void Start(const std::string& options = "--auth trust", const std::string& source = "",
             const std::string& address = "") {
    gateway_ = std::make_unique<BackgroundProcess>(fmt::format(
        "HOME={} exec {} serve --source '{}' --grpc 127.0.0.1:0 --pg 127.0.0.1:0{}{} {}", home_,
        SLUICE_BINARY, source.empty() ? database_.url() : source, address.empty() ? "" : ",",
        address, options));
    grpc_port_ = PortIn(gateway_->ReadLine());
    const std::string line = gateway_->ReadLine();  // PostgreSQL on 127.0.0.1:1234, ...
    ASSERT_NE(line.find(':'), std::string::npos) << line;
    port_ = PortIn(line);
  }
  // "": none.
  static std::string PortIn(const std::string& line) {
    const size_t begin = line.find(':', line.find("127.0.0.1")) + 1;
    return line.substr(begin, line.find_first_not_of("0123456789", begin) - begin);
  }

  std::string Name() const { return database_.url().substr(database_.url().rfind('/') + 1); }
  std::string Conninfo(const std::string& user = "postgres") const {
    return fmt::format("host=127.0.0.1 port={} user={} dbname={}", port_, user, Name());
  }
  ShellOutcome Direct(const std::string& sql) const {
    return RunInShell(fmt::format("psql -XAtq '{}' -c \"{}\" 2>&1", database_.url(), sql));
  }
  // With what it owns in the test's database.
  void DropRole(const std::string& role) const {
    Direct(
        fmt::format("REASSIGN OWNED BY {0} TO postgres; DROP OWNED BY {0}; DROP ROLE {0}", role));
  }
  // The output and errors of psql. `script` is its standard input.
  ShellOutcome Psql(const std::string& script, const std::string& options = "",
                    const std::string& user = "postgres") const {
    const std::string file = home_ + "/script.sql";
    FILE* const out = fopen(file.c_str(), "w");
    fputs(script.c_str(), out);
    fclose(out);
    return RunInShell(
        fmt::format("PGPASSWORD=secret psql -X -v VERBOSITY=verbose -P pager=off {} "
                    "'{}' < {} 2>&1",
                    options, Conninfo(user), file));
  }
  ShellOutcome Python(const std::string& program) const {
    return RunInShell(
        fmt::format("PGPASSWORD=secret /usr/bin/python3 {}/tests/server/pgwire/"
                    "clients/{} '{}' 2>&1",
                    SLUICE_SOURCE_DIR, program, Conninfo()));
  }
  // Waits until `sql` gives this answer; false after half a minute.
  bool Becomes(const std::string& sql, const std::string& answer) const {
    for (int i = 0; i < 300; ++i) {
      if (Direct(sql).output == answer + "\n") {
        return true;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return false;
  }

  testing::PostgresTestDatabase database_;
  const std::string home_ =
      (std::filesystem::temp_directory_path() / fmt::format("sluice_door_{}", getpid())).string();
  std::unique_ptr<BackgroundProcess> gateway_;
  std::string port_, grpc_port_;
};

}  // namespace sluice
