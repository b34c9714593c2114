#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "tests/server/pgwire/door_fixture.h"

// The PostgreSQL door between real clients and a real PostgreSQL.
namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(DoorTest, PsqlSeesItsDatabaseAsItAlwaysDoes) {
  Start();
  // Other tests create databases and roles in this server at the same time: list only those that
  // stay.
  const std::string commands =
      "\\d\n\\d points\n\\d+ points\n\\dt *.*\n\\l template1\n\\dn\n\\du postgres\n\\df\n\\timing "
      "on\n\\timing off\n"
      "SELECT 1 AS one, 'ü' AS two \\gdesc\nSELECT 1; SELECT 2;\n"
      "CREATE TABLE copied (a int);\n\\copy copied from program 'printf \"1\\n2\\n\"'\n"
      "\\set FETCH_COUNT 7\nSELECT x FROM points ORDER BY x LIMIT 20;\nSELECT nope;\n";
  const std::string file = home_ + "/commands.sql";
  FILE* const out = fopen(file.c_str(), "w");
  fputs(commands.c_str(), out);
  fclose(out);
  const std::string psql = "PGPASSWORD=x psql -X -P pager=off '{}' < {} 2>&1 | grep -v ^Time";
  const ShellOutcome direct = RunInShell(fmt::format(fmt::runtime(psql), database_.url(), file));
  ASSERT_EQ(Direct("DROP TABLE copied").exit_code, 0);
  const ShellOutcome through = RunInShell(fmt::format(fmt::runtime(psql), Conninfo(), file));
  EXPECT_EQ(through.output, direct.output);
  EXPECT_THAT(Psql("\\conninfo").output, HasSubstr("SSL connection"));
}

TEST_F(DoorTest, PsqlTrainsPredictsAndReadsErrors) {
  Start();
  const ShellOutcome trained = Psql("SELECT * FROM points LABEL y INTO m;");
  EXPECT_THAT(trained.output, HasSubstr(" was chosen: log_loss"));
  EXPECT_THAT(trained.output, HasSubstr("(1 row)"));
  EXPECT_THAT(Psql("SELECT x FROM points LIMIT 3 TO PREDICT USING m;").output,
              HasSubstr("(3 rows)"));
  // The caret is under the right character.
  const ShellOutcome wrong = Psql("SELECT 'äöü',\t* \r\n FROM points LABEL z INTO m;");
  EXPECT_THAT(wrong.output, HasSubstr("ERROR:  42703: no column 'z' in the SELECT\n"
                                      "LINE 2:  FROM points LABEL z INTO m;\n"
                                      "                           ^\n"));
  EXPECT_THAT(wrong.output, HasSubstr("HINT:"));
  EXPECT_THAT(Psql("SELECT * FROM nope LABEL y INTO m;").output,
              HasSubstr("ERROR:  42P01: relation \"nope\" does not exist\nLINE 1:"));
  EXPECT_THAT(
      Psql("SELECT * FROM points TO TRAIN xgboost.gbtree LABEL y INTO m; SELECT 5 AS five;").output,
      HasSubstr("five"));
  EXPECT_THAT(Psql("SET sluice.seeed = 1;").output, HasSubstr("did you mean 'sluice.seed'?"));
  EXPECT_EQ(Psql("SET sluice.seed = 3;\nSHOW sluice.seed;", "-Atq").output, "3\n");
  EXPECT_THAT(Psql("SET client_min_messages = warning;\nSELECT * FROM points TO TRAIN "
                   "xgboost.gbtree LABEL y INTO m;")
                  .output,
              Not(HasSubstr("NOTICE")));
}

TEST_F(DoorTest, AScriptStopsWhereItFails) {
  Start();
  const ShellOutcome stopped =
      Psql("CREATE TABLE a (i int);\nSELECT * FROM nope LABEL y INTO m;\nCREATE TABLE b (i int);\n",
           "-v ON_ERROR_STOP=1");
  EXPECT_EQ(stopped.exit_code, 3);
  EXPECT_EQ(Direct("SELECT to_regclass('a') IS NULL, to_regclass('b') IS NULL").output, "f|t\n");
  // One transaction, which leaves nothing behind.
  const ShellOutcome single =
      Psql("CREATE TABLE c (i int);\nSELECT * FROM points TO PREDICT d.y USING nope;\n",
           "-1 -v ON_ERROR_STOP=1");
  EXPECT_EQ(single.exit_code, 3);
  EXPECT_EQ(Direct("SELECT to_regclass('c') IS NULL").output, "t\n");
  // Several statements in one message are one transaction, too.
  const ShellOutcome message = RunInShell(fmt::format(
      "psql -X '{}' -c 'CREATE TABLE e (i int); SELECT * FROM nope LABEL y INTO m' 2>&1",
      Conninfo()));
  EXPECT_EQ(message.exit_code, 1);
  EXPECT_EQ(Direct("SELECT to_regclass('e') IS NULL").output, "t\n");
}

// Changes of models are not part of the transaction.
TEST_F(DoorTest, DropModelInATransactionSaysThatItStays) {
  Start();
  const std::string heard =
      Psql(
          "SELECT * FROM points TO TRAIN xgboost.gbtree LABEL y INTO m;\n"
          "GRANT USAGE ON MODEL m TO PUBLIC;\n"
          "BEGIN;\nREVOKE USAGE ON MODEL m FROM PUBLIC;\nDROP MODEL m;\nROLLBACK;\nSHOW MODELS;\n",
          "-At")
          .output;
  EXPECT_THAT(heard, HasSubstr("REVOKE\n"));
  EXPECT_THAT(heard, HasSubstr("WARNING:  01000: REVOKE ... ON MODEL takes effect at once, and "
                               "ROLLBACK does not undo it"));
  EXPECT_THAT(heard,
              HasSubstr("WARNING:  01000: DROP MODEL takes effect at once, and ROLLBACK does "
                        "not undo it"));
  EXPECT_THAT(heard, Not(HasSubstr("GRANT ... ON MODEL")));
  EXPECT_EQ(heard.substr(heard.find("ROLLBACK\n")), "ROLLBACK\n") << "it is gone";
}

TEST_F(DoorTest, PasswordsAreThoseOfTheDatabase) {
  const std::string role = "guest_" + Name();
  Direct(fmt::format("CREATE ROLE {} LOGIN", testing::kPasswordRole));  // other tests' too
  ASSERT_EQ(Direct(fmt::format("CREATE ROLE {0} LOGIN PASSWORD 'secret' IN ROLE {1};"
                               "GRANT SELECT ON points TO {0}",
                               role, testing::kPasswordRole))
                .exit_code,
            0);
  Start("--auth password");
  const ShellOutcome right =
      Psql("SELECT current_user;\nSELECT * FROM points TO TRAIN xgboost.gbtree LABEL y INTO his;\n",
           "-At", role);
  if (right.output.find("without asking for the password") != std::string::npos) {
    GTEST_SKIP() << "this PostgreSQL does not ask the role for its password";
  }
  EXPECT_THAT(right.output, HasSubstr(role + "\n"));
  EXPECT_THAT(right.output, HasSubstr("his|1|"));
  const auto try_as = [this](const std::string& user, const std::string& password) {
    return RunInShell(fmt::format("PGPASSWORD={} psql -X '{}' -c 'SELECT 1' 2>&1", password,
                                  Conninfo(user)))
        .output;
  };
  // A server that does not ask for a password has not verified the user.
  EXPECT_THAT(try_as("postgres", "x"), HasSubstr("without asking for the password"));
  EXPECT_THAT(try_as(role, "wrong"),
              HasSubstr("FATAL:  password authentication failed for user \"" + role + "\""));
  // Each counts once, although psql retries without TLS: after two, no one has to wait.
  try_as(role, "typo");
  EXPECT_THAT(try_as(role, "secret"), HasSubstr("(1 row)"));
  // Password guessing is slowed down.
  std::string guesses;
  for (int i = 0; i < 6; ++i) {
    guesses += try_as(role, "guess");
  }
  EXPECT_THAT(guesses, HasSubstr("FATAL:  too many failed logins"));
  gateway_.reset();
  Direct(fmt::format("DROP OWNED BY {0} CASCADE; DROP ROLE {0}", role));
}

TEST_F(DoorTest, CtrlCEndsATrainingAndAPlainStatement) {
  Start();
  const ShellOutcome plain = RunInShell(
      fmt::format("timeout -s INT 1 psql -X '{}' -c 'SELECT pg_sleep(60)' 2>&1", Conninfo()));
  EXPECT_THAT(plain.output, HasSubstr("canceling statement due to user request"));
  BackgroundProcess training(fmt::format("exec psql -X -v VERBOSITY=verbose '{}' -c \"{}\" 2>&1",
                                         Conninfo(), kLongTraining));
  ASSERT_TRUE(Becomes("SELECT state FROM sluice.jobs", "RUNNING"));
  kill(training.pid(), SIGINT);
  EXPECT_TRUE(Becomes("SELECT state FROM sluice.jobs", "CANCELLED"));
  std::string said;
  for (int line = 0; line < 1000 && said.find("ERROR") == std::string::npos; ++line) {
    said += training.ReadLine() + "\n";
  }
  EXPECT_THAT(said, HasSubstr("ERROR:  57014:"));
}

TEST_F(DoorTest, AClientThatIsKilledTakesItsTrainingAlong) {
  Start();
  BackgroundProcess psql(
      fmt::format("exec psql -X '{}' -c \"{}\" 2>&1", Conninfo(), kLongTraining));
  ASSERT_TRUE(Becomes("SELECT state FROM sluice.jobs", "RUNNING"));
  kill(psql.pid(), SIGKILL);
  EXPECT_TRUE(Becomes("SELECT state FROM sluice.jobs", "CANCELLED"));
  EXPECT_TRUE(
      Becomes("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND "
              "application_name = 'psql' AND pid <> pg_backend_pid()",
              "0"));
}

TEST_F(DoorTest, Psycopg3) {
  Start();
  EXPECT_EQ(Python("with_psycopg3.py").output, "ok\n");
}

TEST_F(DoorTest, Psycopg2AndPandas) {
  Start();
  EXPECT_EQ(Python("with_psycopg2.py").output, "ok\n");
}

TEST_F(DoorTest, Jdbc) {
  Start();
  EXPECT_EQ(RunInShell(fmt::format("java -cp /usr/share/java/postgresql.jar {}/tests/server/pgwire/"
                                   "clients/WithJdbc.java 127.0.0.1 {} {} postgres 2>&1",
                                   SLUICE_SOURCE_DIR, port_, Name()))
                .output,
            "ok\n");
}

TEST_F(DoorTest, NodePostgres) {
  Start();
  EXPECT_EQ(RunInShell(fmt::format("NODE_PATH=/usr/local/share/sluice-tests/usr/share/nodejs node"
                                   " {}/tests/server/pgwire/clients/with_node_postgres.js"
                                   " 127.0.0.1 {} {} postgres secret 2>&1",
                                   SLUICE_SOURCE_DIR, port_, Name()))
                .output,
            "ok\n");
}

// psql sends DECLARE when FETCH_COUNT is set.
TEST_F(DoorTest, OursStandsInsideCursorsAndCopies) {
  Start();
  const std::string ours = "SELECT x FROM points ORDER BY x TO PREDICT USING m";
  EXPECT_THAT(Psql("SELECT * FROM points TO TRAIN xgboost.gbtree LABEL y INTO m;").output,
              HasSubstr("(1 row)"));
  const std::string by_hundred =
      Psql("\\set FETCH_COUNT 100\n" + ours + ";\nSELECT 'still here';", "-Atq").output;
  EXPECT_THAT(by_hundred, HasSubstr("\n300|"));
  EXPECT_THAT(by_hundred, HasSubstr("still here\n"));
  EXPECT_EQ(std::count(by_hundred.begin(), by_hundred.end(), '\n'), 301);
  EXPECT_THAT(Psql("COPY (" + ours + ") TO STDOUT WITH (FORMAT csv, HEADER);", "-Atq").output,
              HasSubstr("x,y\n1,"));
  EXPECT_THAT(Psql("BEGIN;\nDECLARE c CURSOR FOR " + ours +
                       ";\nMOVE 299 FROM c;\nFETCH ALL FROM c;\nCOMMIT;\n"
                       "SELECT count(*) FROM pg_class WHERE relname LIKE 'sluice_rows%';",
                   "-Atq")
                  .output,
              ::testing::MatchesRegex("300\\|[01]\n0\n"));
  EXPECT_THAT(Psql("DECLARE c CURSOR FOR " + ours + ";").output, HasSubstr("25P01"));
  EXPECT_THAT(
      Psql("COPY (SELECT x FROM nope TO PREDICT USING m) TO STDOUT;").output,
      HasSubstr("ERROR:  42P01: relation \"nope\" does not exist\nLINE 1: COPY (SELECT x FROM"
                " nope TO PREDICT USING m) TO STDOUT;\n"
                "                            ^\n"));
}

TEST_F(DoorTest, OursIsPreparedInSql) {
  Start();
  const std::string heard =
      Psql(
          "PREPARE train (float8, int) AS SELECT * FROM points WHERE x < $1"
          " TO TRAIN LinearClassifier WITH train.epoch=$2 LABEL y INTO m;\n"
          "EXECUTE train(100 + 50, 3);\n"
          "PREPARE score AS SELECT x FROM points WHERE x = $1 TO PREDICT USING m;\n"
          "BEGIN;\nEXECUTE score('7');\nCOMMIT;\n"
          "EXECUTE train(1);\nEXECUTE train('x', 3);\n"
          "DEALLOCATE train;\nEXECUTE train(1, 2);\nDEALLOCATE ALL;\nEXECUTE score('7');",
          "-Atq -F ,")
          .output;
  EXPECT_THAT(heard, HasSubstr("\nm,1,"));
  EXPECT_THAT(heard, HasSubstr(",149,3,"));
  EXPECT_THAT(heard, HasSubstr("\n7,"));
  EXPECT_THAT(heard, HasSubstr("ERROR:  42601: wrong number of parameters for prepared statement "
                               "\"train\"\nDETAIL:  Expected 2 parameters but got 1.\n"));
  EXPECT_THAT(heard, HasSubstr("22P02"));
  EXPECT_THAT(heard, HasSubstr("ERROR:  26000: prepared statement \"train\" does not exist\n"));
  EXPECT_THAT(heard, HasSubstr("ERROR:  26000: prepared statement \"score\" does not exist\n"));
}

// The database computes the arguments of EXECUTE, and reports errors in them, as for its own
// statements.
TEST_F(DoorTest, ArgumentsOfExecuteAreTheDatabases) {
  Start();
  const auto heard = [this](const std::string& execute, const std::string& before = "") {
    return Psql(
               "SELECT * FROM points TO TRAIN LinearClassifier WITH train.epoch=1 LABEL y INTO m;\n"
               "PREPARE p (float8) AS SELECT x FROM points WHERE x = $1 TO PREDICT USING m;\n" +
                   before + execute,
               "-Atq -F ,")
        .output;
  };
  EXPECT_THAT(heard("  EXECUTE p(1 + (SELECT 2));"),
              HasSubstr("ERROR:  0A000: cannot use subquery in EXECUTE parameter\n"
                        "LINE 1: EXECUTE p(1 + (SELECT 2));\n"
                        "                      ^"));
  EXPECT_THAT(heard("EXECUTE p(x);"), HasSubstr("ERROR:  42703: column \"x\" does not exist\n"
                                                "LINE 1: EXECUTE p(x);\n"
                                                "                  ^"));
  EXPECT_THAT(heard("EXECUTE p(sum(1));"), HasSubstr("ERROR:  42803: aggregate functions"));
  EXPECT_THAT(heard("EXECUTE p('ü' || nope(2));"), HasSubstr("LINE 1: EXECUTE p('ü' || nope(2));\n"
                                                             "                         ^"));
  // Once, and not for each row.
  EXPECT_THAT(heard("EXECUTE p(nextval('numbers'));\nSELECT 'next', nextval('numbers');",
                    "CREATE SEQUENCE numbers;\n"),
              AllOf(HasSubstr("\n1,"), HasSubstr("\nnext,2\n")));
  EXPECT_THAT(heard("EXPLAIN EXECUTE p(7);"), AllOf(HasSubstr("Predict"), Not(HasSubstr("ERROR"))));
  // A literal without a declared type is interpreted where it is used.
  EXPECT_THAT(heard("PREPARE q AS SELECT x FROM points WHERE x = $1 TO PREDICT USING m;\n"
                    "EXECUTE q('no number');"),
              HasSubstr("LINE 1: EXECUTE q('no number');\n"
                        "                  ^"));
}

// Longer than what is buffered for a client that waits.
TEST_F(DoorTest, LongStatementsGoThrough) {
  Start();
  for (const char* tls : {"require", "disable"}) {
    EXPECT_EQ(RunInShell(fmt::format("python3 -c \"print('SELECT length(' + repr('x' * 3000000) +"
                                     " ');')\" | PGPASSWORD=x timeout 60 psql -XAtq '{} "
                                     "sslmode={}' 2>&1",
                                     Conninfo(), tls))
                  .output,
              "3000000\n")
        << tls;
  }
}

TEST_F(DoorTest, ASessionIsNotIdleWhileItsStatementRuns) {
  Start();
  const std::string heard =
      Psql(
          "SET idle_in_transaction_session_timeout = '300ms';\n"
          "SET idle_session_timeout = '300ms';\nBEGIN;\n"
          "SELECT * FROM points TO TRAIN DNNClassifier WITH train.epoch=150,"
          " model.hidden_units=[64] LABEL y INTO m;\nSELECT 'still here';\nCOMMIT;\n"
          "SELECT * FROM points TO TRAIN DNNClassifier WITH train.epoch=150,"
          " model.hidden_units=[64] LABEL y INTO m;\nSELECT 'and here';",
          "-Atq")
          .output;
  EXPECT_THAT(heard, HasSubstr("still here\n"));
  EXPECT_THAT(heard, HasSubstr("and here\n"));
}

// In single-byte encodings statements, values, rows and messages are in the client's encoding.
TEST_F(DoorTest, OursInOtherEncodings) {
  Start();
  const auto in = [this](const std::string& encoding, const std::string& script) {
    const std::string file = home_ + "/utf8.sql";
    std::ofstream(file) << script;
    return RunInShell(
               fmt::format("iconv -f UTF-8 -t {1} {2} | PGPASSWORD=x PGCLIENTENCODING={0} "
                           "psql -XAtq -v VERBOSITY=verbose '{3}' 2>&1 | iconv -f {1} -t UTF-8",
                           encoding, encoding == "LATIN1" ? "ISO-8859-1" : "CP1251", file,
                           Conninfo()))
        .output;
  };
  const std::string latin1 =
      in("LATIN1",
         "SELECT * FROM points TO TRAIN LinearClassifier WITH train.epoch=1 LABEL y INTO m;\n"
         "SELECT x, 'größe' AS \"ü\" FROM points WHERE x < 2 TO PREDICT USING m;\n"
         "SELECT x, 'ä' AS t FROM points LABEL ü INTO m;\n"
         "BEGIN; CREATE TEMP TABLE mine AS SELECT x, y, 'ü' AS t FROM points WHERE x < 3;\n"
         "SELECT x, t FROM mine ORDER BY x TO PREDICT USING m;\nSELECT 'ö' AS plain;\n"
         "COPY (SELECT x, t FROM mine ORDER BY x TO PREDICT USING m) TO STDOUT;\nCOMMIT;\n"
         "PREPARE p AS SELECT x, $1 AS t FROM points WHERE x < 2 TO PREDICT USING m;\n"
         "EXECUTE p('é');\nSHOW client_encoding;\n"
         "SELECT x, chr(8364) AS euro FROM points TO PREDICT USING m;\nSELECT 'still ß';\n");
  EXPECT_THAT(latin1, HasSubstr("\n1|größe|"));
  EXPECT_THAT(latin1, HasSubstr("LINE 1: SELECT x, 'ä' AS t FROM points LABEL ü INTO m;\n"
                                "                                             ^\n"));
  EXPECT_THAT(latin1, HasSubstr("\n2|ü|"));
  EXPECT_THAT(latin1, HasSubstr("\nö\n"));
  EXPECT_THAT(latin1, HasSubstr("\n2\tü\t"));
  EXPECT_THAT(latin1, HasSubstr("\n1|é|"));
  EXPECT_THAT(latin1, HasSubstr("\nLATIN1\n"));
  EXPECT_THAT(latin1, HasSubstr("ERROR:  22P05: character with byte sequence 0xe2 0x82 0xac in "
                                "encoding \"UTF8\" has no equivalent in encoding \"LATIN1\""));
  EXPECT_THAT(latin1, HasSubstr("\nstill ß\n"));
  EXPECT_THAT(
      in("WIN1251", "SELECT 'привет' AS w, x FROM points WHERE x < 2 TO PREDICT USING m;\n"),
      HasSubstr("привет|1|"));
  const std::string refused =
      RunInShell(fmt::format("PGPASSWORD=x PGCLIENTENCODING=EUC_JP psql -XAtq '{}' -c 'SHOW JOBS'"
                             " -c 'SELECT 1' 2>&1",
                             Conninfo()))
          .output;
  EXPECT_THAT(refused, HasSubstr("client_encoding of this session is EUC_JP"));
  EXPECT_THAT(refused, HasSubstr("SET client_encoding = 'UTF8'"));
  EXPECT_THAT(refused, HasSubstr("\n1\n"));
}

}  // namespace
}  // namespace sluice
