#include <fmt/core.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "tests/server/sluice_process.h"

// The PostgreSQL door over a SQLite file, with real clients before it.
namespace sluice {
namespace {

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

  void Start(const std::string& options = "") {
    gateway_ = std::make_unique<BackgroundProcess>(
        fmt::format("HOME={} exec {} serve --source sqlite:{} --grpc 127.0.0.1:0 --pg 127.0.0.1:0 "
                    "{}",
                    home_, SLUICE_BINARY, file_, options));
    gateway_->ReadLine();
    const std::string line = gateway_->ReadLine();  // PostgreSQL on 127.0.0.1:1234, ...
    const size_t colon = line.find(':');
    ASSERT_NE(colon, std::string::npos) << line;
    port_ = std::to_string(std::stoi(line.substr(colon + 1)));
  }
  static std::string Points() { return "x,y\n1,0\n2,1\n"; }
  std::string Conninfo() const {
    return fmt::format("host=127.0.0.1 port={} user=ann dbname=shop", port_);
  }
  // What psql writes, to both. `script` is its standard input.
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
};

TEST_F(SqliteDoorTest, PsqlLooksAround) {
  Start();
  EXPECT_EQ(
      Psql("\\d\n\\d points\n\\d refers\n\\l\n\\dn\n\\du\n\\di\n\\dv\n\\df\n\\dT\n", "-A").output,
      "List of relations\n"
      "Schema|Name|Type|Owner\n"
      "public|needs|table|ann\n"
      "public|points|table|ann\n"
      "public|refers|table|ann\n"
      "(3 rows)\n"
      "Table \"public.points\"\n"
      "Column|Type|Collation|Nullable|Default\n"
      "id|bigint||not null|\n"
      "x|double precision|||\n"
      "y|bigint|||\n"
      "Indexes:\n"
      "    \"points_pkey\" PRIMARY KEY, btree (id)\n"
      "Referenced by:\n"
      "    TABLE \"refers\" CONSTRAINT \"refers_id_fkey\" FOREIGN KEY (id) REFERENCES "
      "points(id)\n"
      "Table \"public.refers\"\n"
      "Column|Type|Collation|Nullable|Default\n"
      "id|bigint|||\n"
      "Foreign-key constraints:\n"
      "    \"refers_id_fkey\" FOREIGN KEY (id) REFERENCES points(id)\n"
      "List of databases\n"
      "Name|Owner|Encoding|Collate|Ctype|ICU Locale|Locale Provider|Access privileges\n"
      "shop|ann|UTF8|C|C||libc|\n"
      "(1 row)\n"
      "List of schemas\n"
      "Name|Owner\n"
      "public|ann\n"
      "(1 row)\n"
      "List of roles\n"
      "Role name|Attributes|Member of\n"
      "ann||{}\n"
      "List of relations\n"
      "Schema|Name|Type|Owner|Table\n"
      "public|points_pkey|index|ann|points\n"
      "(1 row)\n"
      "Did not find any relations.\n"
      "List of functions\n"
      "Schema|Name|Result data type|Argument data types|Type\n"
      "(0 rows)\n"
      "List of data types\n"
      "Schema|Name|Description\n"
      "(0 rows)\n");
}

TEST_F(SqliteDoorTest, PsqlTrainsAndPredicts) {
  Start();
  const std::string output =
      Psql(
          "SELECT x, y FROM points TO TRAIN xgboost.gbtree WITH train.num_boost_round=3 LABEL y"
          " INTO m;\n"
          "SELECT x FROM points WHERE x <= 2 TO PREDICT scored.y USING m;\n"
          "SELECT count(*) FROM scored;\n"
          "\\set FETCH_COUNT 2\n"
          "SELECT x FROM points WHERE x <= 3 ORDER BY x TO PREDICT USING m;\n"
          "SELECT x FROM points WHERE x <= 3 ORDER BY x;\n"
          "\\unset FETCH_COUNT\n"
          "SELECT x, count(*) AS n FROM points GROUP BY x \\gdesc\n"
          "SELECT nope FROM points LABEL y INTO m;\n"
          "SELECT nope FROM points;\n",
          "-AtqF, -v ON_ERROR_STOP=0")
          .output;
  EXPECT_NE(output.find("\n2\n1,"), std::string::npos) << output;
  EXPECT_NE(output.find("\n1\n2\n3\nx,double precision\nn,bigint\n"), std::string::npos) << output;
  EXPECT_NE(output.find("ERROR:  42703: no such column: nope\nLINE 1: SELECT nope FROM points;\n"
                        "               ^\n"),
            std::string::npos)
      << output;
}

TEST_F(SqliteDoorTest, PsqlCopiesAndCancels) {
  Start();
  EXPECT_EQ(Psql(fmt::format("CREATE TABLE loaded (x REAL, y INTEGER);\n"
                             "\\copy loaded FROM '{}/points.csv' WITH (FORMAT csv, HEADER)\n"
                             "\\copy (SELECT * FROM loaded) TO STDOUT\n",
                             home_),
                 "-q")
                .output,
            "1\t0\n2\t1\n");
  const ShellOutcome cancelled = RunInShell(fmt::format(
      "timeout -s INT 2 psql -X '{}' -c 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1"
      " FROM n) SELECT max(i) FROM n' -c 'SELECT 1' 2>&1",
      Conninfo()));
  EXPECT_NE(cancelled.output.find("canceling statement due to user request"), std::string::npos)
      << cancelled.output;
}

TEST_F(SqliteDoorTest, Psycopg2AndPandas) {
  Start();
  EXPECT_EQ(Client(fmt::format("/usr/bin/python3 sqlite_with_psycopg2.py '{}'", Conninfo())),
            "ok\n");
}

TEST_F(SqliteDoorTest, Psycopg3) {
  Start();
  EXPECT_EQ(Client(fmt::format("/usr/bin/python3 sqlite_with_psycopg3.py '{}'", Conninfo())),
            "ok\n");
}

TEST_F(SqliteDoorTest, Jdbc) {
  Start();
  EXPECT_EQ(Client(fmt::format("java -cp /usr/share/java/postgresql.jar SqliteWithJdbc.java "
                               "127.0.0.1 {} shop ann",
                               port_)),
            "ok\n");
}

TEST_F(SqliteDoorTest, AnOpenAddressNeedsTrust) {
  const ShellOutcome refused = RunInShell(
      fmt::format("HOME={} {} serve --source sqlite:{} --grpc 127.0.0.1:0 --pg 0.0.0.0:0 2>&1",
                  home_, SLUICE_BINARY, file_));
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_NE(refused.output.find("--auth trust"), std::string::npos) << refused.output;
}

}  // namespace
}  // namespace sluice
