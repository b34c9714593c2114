#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/server/pgwire/door_fixture.h"
#include "tests/server/pgwire/libpq_session.h"
#include "tests/server/pgwire/sqlite_door_fixture.h"

// The queries that DBeaver, pgAdmin, Metabase, Grafana, Npgsql and Superset send when they connect
// and explore the catalogs, from tools/*.sql, over both databases: none fails, and existing objects
// are found.
namespace sluice {
namespace {

namespace fs = std::filesystem;
using server::pgwire::LibpqSession;

constexpr const char* kShop =
    "CREATE TABLE customer (id BIGINT PRIMARY KEY, name TEXT NOT NULL UNIQUE, joined TIMESTAMP,"
    " score DOUBLE PRECISION DEFAULT 0.5);"
    "CREATE TABLE purchase (id BIGINT PRIMARY KEY, customer_id BIGINT REFERENCES customer (id),"
    " amount NUMERIC(10, 2), day DATE);"
    "CREATE INDEX purchase_by_day ON purchase (day);"
    "CREATE VIEW big_spender AS SELECT customer_id FROM purchase WHERE amount > 100;"
    "INSERT INTO customer VALUES (1, 'Ann', '2026-01-01 10:00:00', 1.5), (2, 'Bob', NULL, 2.5);"
    "INSERT INTO purchase VALUES (1, 1, 9.95, '2026-01-02')";

struct Asked {
  int line = 0;
  std::string sql;
  std::vector<std::string> has;
};

// Replaces the names in braces.
std::string Filled(std::string text, const std::string& database, LibpqSession& session) {
  while (text.find('{') != std::string::npos) {
    const size_t begin = text.find('{');
    const size_t end = text.find('}', begin);
    const std::string what = text.substr(begin + 1, end - begin - 1);
    std::string value = database;
    if (what.starts_with("oid:")) {
      const auto found = session.Ask(
          fmt::format("SELECT oid FROM pg_catalog.pg_class WHERE relname = '{}'", what.substr(4)),
          0);
      value = found.rows.size() == 1 ? found.rows[0][0].value_or("0") : "0";
    }
    text.replace(begin, end + 1 - begin, value);
  }
  return text;
}

std::vector<Asked> ReadTool(const fs::path& file) {
  std::vector<Asked> all;
  std::ifstream in(file);
  std::string line;
  Asked next;
  for (int number = 1; std::getline(in, line); ++number) {
    constexpr std::string_view kHas = "-- has: ";
    if (line.starts_with(kHas)) {
      std::istringstream list(line.substr(kHas.size()));
      for (std::string one; std::getline(list, one, ',');) {
        // Expected texts do not need commas.
        next.has.push_back(one.substr(one.find_first_not_of(' ')));
      }
      continue;
    }
    if (line.starts_with("--")) {
      continue;
    }
    next.line = next.sql.empty() ? number : next.line;
    next.sql += line + "\n";
    if (line.ends_with(';')) {
      all.push_back(std::exchange(next, {}));
    }
  }
  return all;
}

void Replay(const std::string& conninfo, const std::string& database) {
  size_t asked = 0;
  for (const auto& entry :
       fs::directory_iterator(fs::path(SLUICE_SOURCE_DIR) / "tests/server/pgwire/tools")) {
    if (entry.path().extension() != ".sql") {
      continue;
    }
    LibpqSession session(conninfo);
    for (const Asked& one : ReadTool(entry.path())) {
      const std::string place = fmt::format("{}:{}", entry.path().filename().string(), one.line);
      // Several statements in one message are sent as they are; their answers do not matter.
      const std::string sql = Filled(one.sql, database, session);
      if (std::count(sql.begin(), sql.end(), ';') > 1) {
        EXPECT_EQ(session.Script(sql), "") << place;
        continue;
      }
      const auto answer = session.Ask(sql, 0);
      EXPECT_EQ(answer.error, "") << place << ": " << session.last_error();
      for (const std::string& text : one.has) {
        const std::string wanted = Filled(text, database, session);
        const bool found = std::any_of(
            answer.rows.begin(), answer.rows.end(),
            [&](const auto& row) { return std::count(row.begin(), row.end(), wanted) > 0; });
        EXPECT_TRUE(found) << place << ": no '" << wanted << "' in " << answer.rows.size()
                           << " rows";
      }
      ++asked;
    }
  }
  EXPECT_GT(asked, 100U);
}

class ToolsOverSqlite : public SqliteDoorTest {};

TEST_F(ToolsOverSqlite, AreAnswered) {
  ASSERT_EQ(RunInShell(fmt::format("sqlite3 {} \"{}\" 2>&1", file_, kShop)).output, "");
  const std::string log = home_ + "/log";
  Start(fmt::format("--pg 127.0.0.1:0 --log-level debug 2> {}", log));
  Replay(Conninfo(), "shop");
  // Each query was understood: otherwise it has no rows, and the log has a line about it.
  gateway_.reset();
  std::ifstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_EQ(line.find("without rows"), std::string::npos) << line;
  }
}

class ToolsOverPostgres : public DoorTest {};

TEST_F(ToolsOverPostgres, AreAnswered) {
  ASSERT_EQ(Direct(kShop).exit_code, 0);
  Start();
  Replay(Conninfo(), Name());
}

}  // namespace
}  // namespace sluice
