#include <fmt/core.h>
#include <gtest/gtest.h>

#include "tests/server/pgwire/sqlite_door_fixture.h"

// The PostgreSQL door over a SQLite file, with real clients.
namespace sluice {
namespace {

constexpr uid_t kNobody = 65534;

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

// PostgreSQL's limit of names is not SQLite's.
TEST_F(SqliteDoorTest, NamesMayBeLong) {
  Start();
  const ShellOutcome asked = RunInShell(
      fmt::format("psql -XAt 'host=127.0.0.1 port={} user={} dbname=shop' -c 'SELECT 7' 2>&1",
                  port_, std::string(70, 'u')));
  EXPECT_EQ(asked.output, "7\n");
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

// Another connection makes the table anew, between two statements of the session.
TEST_F(SqliteDoorTest, ATableThatIsMadeAnewShowsItsColumns) {
  Start();
  const std::string output =
      Psql(
          "SELECT x, y FROM points TO TRAIN LinearClassifier LABEL y INTO m;\n"
          "SELECT x, x AS z FROM points WHERE x < 2 TO PREDICT again.y USING m;\n"
          "SELECT * FROM again;\n"
          "SELECT x, x AS z FROM points WHERE x < 2 TO PREDICT again.y WITH predict.keep=[x] USING"
          " m;\nSELECT * FROM again;\n",
          "-AtqF,")
          .output;
  EXPECT_NE(output.find("\n1,1,"), std::string::npos) << output;
  EXPECT_EQ(output.find("ERROR"), std::string::npos) << output;
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

TEST_F(SqliteDoorTest, PsqlDescribesMore) {
  Start();
  const std::string output =
      Psql(
          "CREATE VIEW even AS SELECT x FROM points WHERE y = 0;\n"
          "CREATE INDEX by_y ON points (y);\n"
          "\\dt+\n\\d+ points\n\\d+ even\n\\di+\n\\dv+\n\\df+\n\\l+\n\\du+\n"
          "\\dn+\n\\db\n\\dp\n\\dx\n\\ddp\n\\dRp\n\\dy\n\\sv even\n\\d nope\n",
          "-A")
          .output;
  for (const char* line :
       {"public|points|table|ann|permanent|heap||\n", "y|bigint||||plain|", "\"by_y\" btree (y)",
        " kB|pg_default|\n", "CREATE OR REPLACE VIEW public.even AS\n",
        "public|by_y|index|ann|points|permanent|btree|", "public|even|view|ann|permanent|",
        "SELECT x FROM points WHERE y = 0", "Did not find any relation named \"nope\"."}) {
    EXPECT_NE(output.find(line), std::string::npos) << line << " in\n" << output;
  }
  EXPECT_EQ(output.find("ERROR"), std::string::npos) << output;
}

// They are in a schema of their own, as in PostgreSQL.
TEST_F(SqliteDoorTest, SluicesTablesAreNotAmongTheUsers) {
  Start();
  EXPECT_EQ(
      Psql("SELECT x, y FROM points TO TRAIN xgboost.gbtree LABEL y INTO m;\n", "-Atqo /dev/null")
          .exit_code,
      0);
  EXPECT_EQ(Psql("\\dt\n\\dn\n", "-At").output,
            "public|needs|table|ann\npublic|points|table|ann\npublic|refers|table|ann\n"
            "public|ann\nsluice|ann\n");
  const std::string output =
      Psql(
          "\\dt sluice.mod*\n\\d sluice.models\n\\di sluice.*\n"
          "SELECT name FROM sluice.models;\nSELECT name FROM \"sluice\".\"models\";\n"
          "SELECT name FROM sluice_models;\nSELECT sluice.models.name FROM sluice.models;\n"
          "SELECT oid = 'sluice.models'::regclass, oid::regclass, to_regclass('models'),"
          " (SELECT count(*) FROM sluice.result_tables) FROM pg_class WHERE relname = 'models';\n"
          "SELECT table_schema, count(*) > 9 FROM information_schema.tables WHERE table_schema"
          " IN ('public', 'sluice') GROUP BY 1 ORDER BY 1;\n"
          "SELECT DISTINCT table_name FROM information_schema.columns WHERE table_schema ="
          " 'public' ORDER BY 1;\n",
          "-At")
          .output;
  for (const char* part :
       {"sluice|model_versions|table|ann\nsluice|models|table|ann\n", "name|text||not null|",
        "sluice|models_pkey|index|ann|models",
        "\nm\nm\nm\nm\n1|sluice.models||0\npublic|0\nsluice|1\nneeds\npoints\nrefers\n"}) {
    EXPECT_NE(output.find(part), std::string::npos) << part << " in\n" << output;
  }
  EXPECT_EQ(output.find("ERROR"), std::string::npos) << output;
}

// As a new user finds it at the end of scripts/quickstart.
TEST_F(SqliteDoorTest, QuickstartsLastLineOpensPsql) {
  std::ifstream script(SLUICE_SOURCE_DIR "/scripts/quickstart");
  std::string line;
  std::string last;
  while (std::getline(script, line)) {
    last = line.empty() ? last : line;
  }
  const auto replace = [&last](const std::string& from, const std::string& to) {
    for (size_t at = last.find(from); at != std::string::npos; at = last.find(from, at)) {
      last.replace(at, from.size(), to);
      at += to.size();
    }
  };
  ASSERT_TRUE(last.starts_with("echo \"  $sluice serve ")) << last;
  last = last.substr(6, last.size() - 7);
  replace("$sluice", SLUICE_BINARY);
  replace("$database", file_);
  Start();  // whose port is free again
  gateway_.reset();
  replace("5433", port_);
  // A loaded machine takes longer than the line waits.
  replace("sleep 1", "for i in $(seq 100); do psql -h 127.0.0.1 -p " + port_ +
                         " -c '' 2>/dev/null && break; sleep 0.1; done");
  std::ofstream(home_ + "/line.sh") << last << "\nkill $!\n";
  const std::string output =
      RunInShell(fmt::format("cd {0} && echo '\\\\dt' | HOME={0} bash line.sh 2>&1", home_)).output;
  EXPECT_NE(output.find("public | points | table"), std::string::npos) << last << "\n" << output;
}

// What psql says where the file goes while it is connected.
TEST_F(SqliteDoorTest, PsqlHearsThatItsFileIsGone) {
  Start();
  const std::string output =
      Psql(fmt::format("SELECT count(*) FROM points;\n\\! mv {0} {0}.away\n"
                       "INSERT INTO points (x) VALUES (1);\n"
                       "SELECT x, y FROM points LABEL y INTO m;\n\\! mv {0}.away {0}\n"
                       "SELECT count(*) FROM points;\n",
                       file_),
           "-At")
          .output;
  const std::string gone =
      "ERROR:  58P01: the database file " + file_ + " was deleted while it was in use\n";
  EXPECT_EQ(output.find("300\n" + gone), 0U) << output;
  EXPECT_NE(output.find("HINT:  what was written since then is not there; restore the file, and run"
                        " the statement again\n"),
            std::string::npos)
      << output;
  EXPECT_EQ(output.substr(output.size() - 5), "\n300\n") << output;
}

TEST_F(SqliteDoorTest, AReadOnlyFileIsReadAndNotWritten) {
  std::filesystem::permissions(file_, std::filesystem::perms(0444));
  std::filesystem::permissions(home_, std::filesystem::perms(0755));
  std::filesystem::create_directories(home_ + "/.sluice");
  // Root may write everything.
  const bool root = geteuid() == 0;
  ASSERT_EQ(root ? chown((home_ + "/.sluice").c_str(), kNobody, kNobody) : 0, 0);
  Start("--pg 127.0.0.1:0",
        root ? fmt::format("setpriv --reuid={0} --regid={0} --clear-groups", kNobody) : "");
  const std::string output =
      Psql(
          "SELECT count(*) FROM points;\n\\dt points\n"
          "INSERT INTO points (x) VALUES (1);\n"
          "SELECT x, y FROM points TO TRAIN xgboost.gbtree LABEL y INTO m;\n",
          "-At")
          .output;
  EXPECT_EQ(output.find("300\npublic|points|table|ann\n"
                        "ERROR:  25006: attempt to write a readonly database\n"),
            0U)
      << output;
  EXPECT_NE(output.find("ERROR", 80), std::string::npos) << output;
}

// After ten seconds, by another process; a reader does not wait at all.
TEST_F(SqliteDoorTest, ALockThatStaysIsToldWithWhatToDo) {
  Start();
  BackgroundProcess locker(fmt::format(
      "(echo 'BEGIN IMMEDIATE;'; echo \"SELECT 'locked';\"; sleep 60) | exec sqlite3 {}", file_));
  EXPECT_EQ(locker.ReadLine(), "locked");
  EXPECT_EQ(
      Psql("SELECT count(*) FROM points;\nINSERT INTO points (x) VALUES (1);\n", "-At").output,
      "300\nERROR:  55P03: database is locked\nHINT:  another connection, or an open "
      "transaction of another session, holds the write lock: COMMIT or ROLLBACK it\n");
}

TEST_F(SqliteDoorTest, ASilentWriterDoesNotKeepOthersWaiting) {
  Start();
  BackgroundProcess silent(
      fmt::format("(echo \"SET idle_in_transaction_session_timeout = '100ms'; BEGIN;"
                  " INSERT INTO points (x) VALUES (1); SELECT 'written';\"; sleep 5;"
                  " echo \"SELECT 'still there';\"; sleep 60) | exec psql -XAtq '{}' 2>&1",
                  Conninfo()));
  ASSERT_EQ(silent.ReadLine(), "written");
  EXPECT_EQ(Psql("INSERT INTO points (x) VALUES (2);\nSELECT count(*) FROM points;\n"
                 "SET idle_in_transaction_session_timeout = 'long';\n"
                 "SHOW idle_in_transaction_session_timeout;\n",
                 "-Atq")
                .output,
            "301\nERROR:  22023: invalid value for parameter"
            " \"idle_in_transaction_session_timeout\": \"long\"\n"
            "HINT:  a whole number of ms, s, min, h or d, as in '30s'\n1min\n");
  EXPECT_EQ(silent.ReadLine(), "FATAL:  terminating connection due to idle-in-transaction timeout");
}

// Another process writes all the time: nobody hears of locks, and no row is lost.
TEST_F(SqliteDoorTest, OthersWriteAtTheSameTime) {
  Start();
  RunInShell(fmt::format("sqlite3 {} 'CREATE TABLE both (who TEXT, i INTEGER)'", file_));
  const std::string output =
      RunInShell(fmt::format(
                     "(for i in $(seq 40); do sqlite3 -cmd '.timeout 10000' {0} \"INSERT INTO both"
                     " VALUES ('shell', $i)\"; done) 2>&1 & "
                     "for i in $(seq 40); do echo \"INSERT INTO both VALUES ('psql', $i);\"; done |"
                     " psql -Xq -v ON_ERROR_STOP=1 '{1}' 2>&1; wait; psql -XAtq '{1}' -c \"SELECT"
                     " who, count(*) FROM both GROUP BY 1 ORDER BY 1\" 2>&1",
                     file_, Conninfo()))
          .output;
  EXPECT_EQ(output, "psql|40\nshell|40\n");
}

TEST_F(SqliteDoorTest, AKilledGatewayLeavesWhatWasCommitted) {
  Start();
  const std::string pid = std::to_string(gateway_->pid());
  const std::string output =
      Psql(
          "INSERT INTO points (x) VALUES (-1);\nBEGIN;\nDELETE FROM points;\n"
          "SELECT count(*) FROM points;\n\\! kill -9 " +
              pid + "\nCOMMIT;\n",
          "-Atq")
          .output;
  // libpq says one or the other, by whether it reads or writes when the connection ends.
  EXPECT_TRUE(output.starts_with("0\nserver closed the connection unexpectedly") ||
              output.starts_with("0\nSSL SYSCALL error: EOF detected"))
      << output;
  gateway_.reset();
  Start();
  EXPECT_EQ(Psql("SELECT count(*) FROM points; PRAGMA integrity_check;", "-Atq").output,
            "301\nok\n");
}

TEST_F(SqliteDoorTest, AnOpenAddressNeedsTrust) {
  const ShellOutcome refused = RunInShell(
      fmt::format("HOME={} {} serve --source sqlite:{} --grpc 127.0.0.1:0 --pg 0.0.0.0:0 2>&1",
                  home_, SLUICE_BINARY, file_));
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_NE(refused.output.find("--auth trust"), std::string::npos) << refused.output;
}

// Drivers send a string so only for its escapes; otherwise it is what SQLite reads.
TEST_F(SqliteDoorTest, AStringOfPostgresHasAnEscape) {
  Start();
  EXPECT_EQ(Psql("SELECT e'x' FROM (SELECT 5 AS e);\nSELECT E'it\\'s';\n", "-At").output,
            "5\nit's\n");
}

// PostgreSQL's parser reads such a statement; to print its tree would take stack without a bound.
TEST_F(SqliteDoorTest, OutlivesADeepQueryOfTheCatalog) {
  Start();
  std::string deep = "SELECT 1";
  for (int i = 0; i < 200'000; ++i) {
    deep += "+1";
  }
  Psql(deep + " FROM pg_catalog.pg_class;\n");
  EXPECT_EQ(Psql("SELECT 5 AS five;\n", "-At").output, "5\n");
}

}  // namespace
}  // namespace sluice
