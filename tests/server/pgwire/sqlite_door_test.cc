#include <fmt/core.h>
#include <gtest/gtest.h>

#include "tests/server/pgwire/sqlite_door_fixture.h"

// The PostgreSQL door over a SQLite file, with real clients.
namespace sluice {
namespace {

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

// The gateway's users are then those in a file, at all of its doors.
TEST_F(SqliteDoorTest, UsersLogInByPasswordsOfAFile) {
  const auto password = [this](const std::string& input, const std::string& arguments) {
    return RunInShell(fmt::format("printf '%s' '{}' | HOME={} {} password {} 2>&1", input, home_,
                                  SLUICE_BINARY, arguments));
  };
  EXPECT_EQ(password("pässwörd\n", "ann").output,
            fmt::format("ann logs in by {}/.sluice/passwords\n", home_));
  EXPECT_EQ(password("other", "bob").exit_code, 0);
  EXPECT_NE(password("", "carl").output.find("the input has ended"), std::string::npos);
  Start("--pg 0.0.0.0:0");
  const auto as = [this](const std::string& user, const std::string& secret, const std::string& sql,
                         const std::string& options = "") {
    return RunInShell(fmt::format("PGPASSWORD='{}' psql -XAtq -P pager=off 'host=127.0.0.1 port={} "
                                  "user={} dbname=shop {}' -c \"{}\" 2>&1",
                                  secret, port_, user, options, sql))
        .output;
  };
  EXPECT_EQ(as("ann", "pässwörd", "SELECT current_user", "channel_binding=require"), "ann\n");
  EXPECT_EQ(as("ann", "pässwörd", "SELECT current_user", "sslmode=disable"), "ann\n");
  EXPECT_NE(as("ann", "pässwörd",
               "SELECT x, y FROM points TO TRAIN xgboost.gbtree WITH train.num_boost_round=2 LABEL "
               "y INTO m")
                .find("m|1|1|"),
            std::string::npos);
  // Models belong to all users; a job shows its user.
  EXPECT_EQ(as("bob", "other", "SHOW MODELS").substr(0, 2), "m|");
  EXPECT_EQ(as("bob", "other", "SELECT username FROM sluice_jobs"), "ann\n");
  const std::string refused = "FATAL:  password authentication failed for user \"{}\"\n";
  EXPECT_NE(as("bob", "pässwörd", "SELECT 1").find(fmt::format(fmt::runtime(refused), "bob")),
            std::string::npos);
  EXPECT_NE(as("nobody", "other", "SELECT 1").find(fmt::format(fmt::runtime(refused), "nobody")),
            std::string::npos);
  // gRPC requires a login, too.
  const auto grpc = [this](const std::string& secret) {
    return RunInShell(fmt::format("PGPASSWORD='{}' {} sql --gateway bob@127.0.0.1:{} --format csv "
                                  "-c 'SELECT count(*) AS n FROM points' 2>&1",
                                  secret, SLUICE_BINARY, grpc_port_))
        .output;
  };
  EXPECT_EQ(grpc("other"), "n\n300\n");
  EXPECT_NE(grpc("wrong").find("password authentication failed"), std::string::npos);
  EXPECT_NE(grpc("").find("asks for a password"), std::string::npos) << grpc("");
  EXPECT_EQ(password("", "--remove bob").exit_code, 0);
  EXPECT_NE(as("bob", "other", "SELECT 1").find("FATAL"), std::string::npos);
}

TEST_F(SqliteDoorTest, TwoGatewaysServeOneFile) {
  Start();
  const std::string one = Conninfo();
  const std::unique_ptr<BackgroundProcess> first = std::move(gateway_);
  Start();
  const auto ask = [](const std::string& conninfo, const std::string& sql) {
    return RunInShell(fmt::format("psql -XAtq '{}' -c \"{}\" 2>&1", conninfo, sql)).output;
  };
  EXPECT_EQ(ask(one, "CREATE TABLE here (i INTEGER)"), "");
  EXPECT_EQ(ask(Conninfo(),
                "INSERT INTO here VALUES (1); SELECT count(*) FROM pg_class WHERE"
                " relname = 'here'"),
            "1\n");
  EXPECT_EQ(ask(one, "SELECT * FROM here"), "1\n");
  EXPECT_NE(ask(one,
                "SELECT x, y FROM points TO TRAIN xgboost.gbtree WITH train.num_boost_round=2"
                " LABEL y INTO m")
                .find("m|1|"),
            std::string::npos);
  EXPECT_EQ(ask(Conninfo(), "SELECT x FROM points WHERE x < 2 TO PREDICT USING m").substr(0, 2),
            "1|");
}

// EVALUATE and EXPLAIN answer with rows, too.
TEST_F(SqliteDoorTest, PsqlEvaluatesAndExplains) {
  Start();
  const std::string output =
      Psql(
          "EXPLAIN SELECT x, y FROM points TO TRAIN xgboost.gbtree LABEL y INTO m;\n"
          "SELECT x, y FROM points TO TRAIN xgboost.gbtree WITH train.num_boost_round=3 LABEL y"
          " INTO m;\n"
          "SELECT x, y FROM points TO EVALUATE m LABEL y;\n"
          "SELECT x, y FROM points TO EXPLAIN m;\n"
          "EXPLAIN SELECT x FROM points TO PREDICT USING m;\n"
          "EXPLAIN SELECT x FROM points WHERE id = 3;\n",
          "-A")
          .output;
  for (const char* part : {"Job: in the gateway's process", "m|1|1|", "accuracy", "x|"}) {
    EXPECT_NE(output.find(part), std::string::npos) << part << " in\n" << output;
  }
  EXPECT_EQ(output.find("ERROR"), std::string::npos) << output;
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
