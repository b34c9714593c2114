#pragma once

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "tests/server/sluice_process.h"

namespace sluice {

// The PostgreSQL door of a gateway process, over a SQLite file with a few tables.
class SqliteDoorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(home_);
    std::ofstream(home_ + "/points.csv") << Points();
    ASSERT_EQ(
        RunInShell(fmt::format("{} sql --source sqlite:{} -c \"CREATE TABLE points (id INTEGER"
                               " PRIMARY KEY, x REAL, y INTEGER);"
                               " CREATE TABLE needs (a INTEGER NOT NULL);"
                               " CREATE TABLE refers (id INTEGER REFERENCES points (id)"
                               " CHECK (id > 0));"
                               " WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM"
                               " n WHERE i < 300) INSERT INTO points SELECT i, i, i % 2"
                               " FROM n\" 2>&1",
                               SLUICE_BINARY, file_))
            .exit_code,
        0);
  }
  void TearDown() override {
    gateway_.reset();
    std::filesystem::remove_all(home_);
  }

  // `by`: the program that starts it.
  void Start(const std::string& options = "--pg 127.0.0.1:0", const std::string& by = "") {
    gateway_ = std::make_unique<BackgroundProcess>(
        fmt::format("HOME={} exec {} {} serve --source sqlite:{} --grpc 127.0.0.1:0 {}", home_, by,
                    SLUICE_BINARY, file_, options));
    const std::string grpc = gateway_->ReadLine();  // gRPC on 127.0.0.1:1234
    grpc_port_ = grpc.substr(grpc.rfind(':') + 1);
    const std::string line = gateway_->ReadLine();  // PostgreSQL on 127.0.0.1:1234, ...
    const size_t colon = line.find(':');
    ASSERT_NE(colon, std::string::npos) << line;
    port_ = std::to_string(std::stoi(line.substr(colon + 1)));
  }
  static std::string Points() { return "x,y\n1,0\n2,1\n"; }
  std::string Conninfo() const {
    return fmt::format("host=127.0.0.1 port={} user=ann dbname=shop", port_);
  }
  // The output and errors of psql. `script` is its standard input.
  ShellOutcome Psql(const std::string& script, const std::string& options = "") const {
    std::ofstream(home_ + "/script.sql") << script;
    return RunInShell(fmt::format("psql -X -v VERBOSITY=verbose -P pager=off {} '{}' < {} 2>&1",
                                  options, Conninfo(), home_ + "/script.sql"));
  }
  std::string Client(const std::string& command) const {
    return RunInShell(fmt::format("cd {}/tests/server/pgwire/clients && {} 2>&1", SLUICE_SOURCE_DIR,
                                  command))
        .output;
  }

  const std::string home_ =
      (std::filesystem::temp_directory_path() / fmt::format("sluice_sqlite_door_{}", getpid()))
          .string();
  const std::string file_ = home_ + "/shop.db";
  std::unique_ptr<BackgroundProcess> gateway_;
  std::string port_;
  std::string grpc_port_;
};

}  // namespace sluice
