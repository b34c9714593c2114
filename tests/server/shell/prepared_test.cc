#include <gmock/gmock.h>

#include "tests/server/shell/shell_fixture.h"
#include "tests/support/postgres_server.h"

// PREPARE, EXECUTE and DEALLOCATE of statements of Sluice in the shell: on SQLite, on PostgreSQL,
// and through a gateway, where each script is a call of its own.
namespace sluice::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class PreparedTest : public ShellTest {
 protected:
  void MakeModel() {
    std::string rows;
    for (int i = 0; i < 60; ++i) {
      rows += (rows.empty() ? "(" : ",(") + std::to_string(i) + ", " + std::to_string(2 * i) + ")";
    }
    const Outcome made =
        Sql({"-c", "CREATE TABLE t (x integer, y integer); INSERT INTO t VALUES " + rows +
                       "; SELECT x, y FROM t TO TRAIN LinearRegressor LABEL y "
                       "INTO m"});
    ASSERT_EQ(made.exit_code, 0) << made.err;
  }
  // Each -c is a script of its own.
  Outcome Scripts(const std::vector<std::string>& scripts) {
    std::vector<std::string> arguments = {"--format", "csv"};
    for (const std::string& script : scripts) {
      arguments.insert(arguments.end(), {"-c", script});
    }
    if (gateway_address_.empty()) {
      return Sql(arguments);
    }
    arguments.insert(arguments.begin(), {"sql", "--gateway", gateway_address_});
    return Run(arguments);
  }
  void CheckPrepared() {
    const std::string prepare =
        "PREPARE p (integer) AS SELECT x FROM t WHERE x < $1 ORDER BY x TO PREDICT USING m";
    const Outcome executed = Scripts({prepare + "; EXECUTE p(1 + 1)", "EXECUTE p(length('a'))"});
    EXPECT_EQ(executed.exit_code, 0) << executed.err;
    EXPECT_THAT(executed.out,
                ::testing::ContainsRegex("^x,y\n0,[^\n]*\n1,[^\n]*\nx,y\n0,[^\n]*\n$"));

    const Outcome untyped =
        Scripts({"PREPARE q AS SELECT x FROM t WHERE x = $1 + 1 TO PREDICT USING m; EXECUTE q(6)"});
    EXPECT_EQ(untyped.exit_code, 0) << untyped.err;
    EXPECT_THAT(untyped.out, HasSubstr("\n7,"));

    const Outcome explained = Scripts({prepare, "EXPLAIN EXECUTE p(3)"});
    EXPECT_EQ(explained.exit_code, 0) << explained.err;
    EXPECT_THAT(explained.out, HasSubstr("predict"));

    const Outcome taken = Scripts({prepare, prepare});
    EXPECT_EQ(taken.exit_code, 1);
    EXPECT_THAT(taken.err, HasSubstr("prepared statement \"p\" already exists"));

    for (const char* const forgets : {"DEALLOCATE p", "DEALLOCATE ALL", "DISCARD ALL"}) {
      const Outcome gone = Scripts({prepare, forgets, "EXECUTE p(3)"});
      EXPECT_EQ(gone.exit_code, 1) << forgets;
      EXPECT_THAT(gone.err, HasSubstr("\"p\" does not exist")) << forgets;
      EXPECT_EQ(Scripts({prepare, forgets, prepare}).exit_code, 0) << forgets;
    }
    const Outcome kept = Scripts({"SET sluice.seed = 3", prepare, "RESET ALL", "EXECUTE p(1)"});
    EXPECT_EQ(kept.exit_code, 0) << kept.err;

    for (const char* const wrong : {"EXECUTE p", "EXECUTE p(1, 2)"}) {
      const Outcome refused = Scripts({prepare, wrong});
      EXPECT_EQ(refused.exit_code, 1) << wrong;
      EXPECT_THAT(refused.err,
                  HasSubstr("wrong number of parameters for prepared statement \"p\""));
    }

    // Carets stand under the argument, and under the misspelt word.
    const Outcome wrong = Scripts({prepare + "; SELECT 1 AS a; EXECUTE p(1 + nowhere)"});
    EXPECT_EQ(wrong.exit_code, 1);
    EXPECT_THAT(wrong.err,
                ::testing::ContainsRegex("LINE 1:[0-9]+: .*EXECUTE p.1 . nowhere.\n +\\^\n"));
    const Outcome misspelt = Scripts({"PREPARE r AS SELECT x FROM t TO PREDICT USNG m"});
    EXPECT_EQ(misspelt.exit_code, 1);
    EXPECT_THAT(misspelt.err, ::testing::ContainsRegex("LINE 1:46: .*USNG m\n +\\^\n"));
    EXPECT_THAT(misspelt.err, Not(HasSubstr("near \"PREPARE\"")));
  }

  std::string gateway_address_;  // "": none
};

TEST_F(PreparedTest, WorksOnSqlite) {
  MakeModel();
  CheckPrepared();
}

TEST_F(PreparedTest, WorksOnPostgres) {
  const sluice::testing::PostgresTestDatabase database;
  if (database.url().empty()) {
    GTEST_SKIP() << "no PostgreSQL server";
  }
  source_ = database.url();
  MakeModel();
  CheckPrepared();
  // The database's own are its own.
  const Outcome own = Scripts({"PREPARE d (integer) AS SELECT $1 + 1 AS n", "EXECUTE d(2)",
                               "DEALLOCATE d", "EXECUTE d(2)"});
  EXPECT_EQ(own.exit_code, 1);
  EXPECT_THAT(own.out, HasSubstr("n\n3\n"));
  EXPECT_THAT(own.err, HasSubstr("prepared statement \"d\" does not exist"));
  // Ours and its own are one after another, not one behind the other.
  const std::string ours = "PREPARE d AS SELECT x FROM t TO PREDICT USING m";
  for (const auto& [first, second] : {std::pair(ours, std::string("PREPARE d AS SELECT 1 AS n")),
                                      std::pair(std::string("PREPARE d AS SELECT 1 AS n"), ours)}) {
    const Outcome taken = Scripts({first, second});
    EXPECT_EQ(taken.exit_code, 1) << second;
    EXPECT_THAT(taken.err, HasSubstr("prepared statement \"d\" already exists"));
    EXPECT_EQ(Scripts({first, "DEALLOCATE d", second}).exit_code, 0) << second;
  }
}

TEST_F(PreparedTest, WorksThroughAGateway) {
  MakeModel();
  const pid_t gateway = Start({"serve", "--source", source_, "--grpc", "127.0.0.1:0"});
  std::string ready;
  while (ready.find('\n') == std::string::npos) {
    ASSERT_EQ(waitpid(gateway, nullptr, WNOHANG), 0) << ReadAll(folder_ / "err");
    usleep(10'000);
    ready = ReadAll(folder_ / "out");
  }
  std::filesystem::rename(folder_ / "out", folder_ / "gateway_out");
  std::filesystem::rename(folder_ / "err", folder_ / "gateway_err");
  gateway_address_ = ready.substr(8, ready.size() - 9);
  CheckPrepared();
  kill(gateway, SIGTERM);
  waitpid(gateway, nullptr, 0);
}

}  // namespace
}  // namespace sluice::server
