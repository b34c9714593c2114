#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "tests/server/pgwire/door_fixture.h"
#include "tests/server/pgwire/raw_client.h"

// PostgreSQL is restarted behind the door, whatever its sessions are doing: each is told why it
// ends, in the server's words where there are any, nothing is left behind, and new sessions work.
namespace sluice {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

// Each of the 300 rows takes a while to be computed. (Without x in it, the function would be called
// once.)
constexpr const char* kSlowRows = "x + (SELECT 0 FROM pg_sleep(0.2 + 0 * x)) AS x, y";
// The temporary table makes a statement read its rows through the session.
constexpr const char* kThroughSession = "BEGIN; CREATE TEMP TABLE mine AS SELECT * FROM points; ";

class RestartedServer : public ::testing::TestWithParam<const char*> {
 protected:
  static void SetUpTestSuite() { server_ = testing::PostgresServer::StartOwn(""); }
  static void TearDownTestSuite() { server_.reset(); }
  void SetUp() override {
    if (server_ == nullptr) {
      GTEST_SKIP() << "no PostgreSQL";
    }
    std::filesystem::create_directories(home_);
    Direct("DROP SCHEMA IF EXISTS sluice CASCADE");
    Direct("DROP TABLE IF EXISTS points");
    Direct(
        "CREATE TABLE points AS SELECT i::float8 AS x, i % 2 AS y FROM generate_series(1, 300) i");
    gateway_ = std::make_unique<BackgroundProcess>(
        fmt::format("HOME={} exec {} serve --source {}postgres --grpc 127.0.0.1:0 --pg 127.0.0.1:0 "
                    "--auth trust",
                    home_, SLUICE_BINARY, server_->url_prefix()));
    gateway_->ReadLine();
    const std::string line = gateway_->ReadLine();
    port_ = std::to_string(std::stoi(line.substr(line.find(':') + 1)));
    // The first statement makes Sluice's tables.
    EXPECT_THAT(Psql(DoorUrl(), "SELECT x, y FROM points TO TRAIN xgboost.gbtree LABEL y INTO m"),
                HasSubstr("m|1|1|"));
  }
  void TearDown() override {
    gateway_.reset();
    std::filesystem::remove_all(home_);
  }

  std::string Psql(const std::string& url, const std::string& sql) const {
    return RunInShell(fmt::format("psql -XAtq -v VERBOSITY=verbose '{}' -c \"{}\" 2>&1", url, sql))
        .output;
  }
  std::string Direct(const std::string& sql) const {
    return Psql(server_->url_prefix() + "postgres", sql);
  }
  std::string DoorUrl() const {
    return fmt::format("host=127.0.0.1 port={} user=postgres dbname=postgres", port_);
  }
  // Waits for up to half a minute.
  bool Becomes(const std::string& sql, const std::string& answer) const {
    for (int i = 0; i < 300; ++i) {
      if (Direct(sql) == answer + "\n") {
        return true;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return false;
  }
  // A statement's whole output, with the server restarted once `sql` says 1.
  std::string RestartedIn(const std::string& statement, const std::string& sql) const {
    BackgroundProcess client(
        fmt::format("exec psql -XAtq -v VERBOSITY=verbose '{}' -c \"{}\" 2>&1 > /dev/null",
                    DoorUrl(), statement));
    EXPECT_TRUE(Becomes(sql, "1")) << statement;
    EXPECT_TRUE(server_->Restart(GetParam()));
    std::string said;
    for (std::string line = client.ReadLine(); !line.empty(); line = client.ReadLine()) {
      said += line + "\n";
    }
    return said;
  }
  static std::string Running(const std::string& query) {
    return fmt::format(
        "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%{}%' AND"
        " pid <> pg_backend_pid()",
        query);
  }
  // The server's words (a WARNING where it stops at once); ours, if they went to a statement that
  // had borrowed the connection; or psql's own.
  static auto IsTold() {
    return AnyOf(HasSubstr(":  57P01: terminating connection"), HasSubstr("08006"),
                 HasSubstr("connection to server was lost"));
  }
  void ExpectNothingIsLeft() const {
    EXPECT_TRUE(
        Becomes("SELECT count(*) FROM sluice.jobs WHERE state IN ('RUNNING', 'PENDING')", "0"))
        << Direct("SELECT id, state, kind, error FROM sluice.jobs");
    EXPECT_TRUE(
        Becomes("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND"
                " application_name = 'psql' AND pid <> pg_backend_pid()",
                "0"));
    EXPECT_EQ(Psql(DoorUrl(), "SELECT count(*) FROM points"), "300\n");
    EXPECT_THAT(
        Psql(DoorUrl(), "SELECT x, y FROM points TO TRAIN xgboost.gbtree LABEL y INTO after"),
        HasSubstr("after|1|"));
  }

  static inline std::unique_ptr<testing::PostgresServer> server_;
  const std::string home_ =
      (std::filesystem::temp_directory_path() / fmt::format("sluice_restart_{}", getpid()))
          .string();
  std::unique_ptr<BackgroundProcess> gateway_;
  std::string port_;
};

TEST_P(RestartedServer, EndsAnIdleSession) {
  const RawClient idle(port_);
  idle.LogIn("postgres");
  EXPECT_TRUE(server_->Restart(GetParam()));
  EXPECT_THAT(idle.ReadAll(), AnyOf(HasSubstr("57P01"), HasSubstr("08006")));
  ExpectNothingIsLeft();
}

TEST_P(RestartedServer, EndsAQuery) {
  EXPECT_THAT(RestartedIn("SELECT pg_sleep(60)", Running("pg_sleep(60)")), IsTold());
  ExpectNothingIsLeft();
}

TEST_P(RestartedServer, EndsACopy) {
  EXPECT_THAT(RestartedIn("COPY (SELECT repeat('x', 1000), generate_series(1, 100000000)) TO"
                          " STDOUT",
                          Running("generate_series(1, 100000000)")),
              IsTold());
  ExpectNothingIsLeft();
}

// Nobody can tell it anything.
TEST_P(RestartedServer, EndsACopyWhoseClientDoesNotRead) {
  const RawClient client(port_);
  client.LogIn("postgres");
  client.Send(
      QueryMessage("COPY (SELECT repeat('x', 1000), generate_series(1, 100000000)) TO STDOUT"));
  ASSERT_TRUE(
      Becomes("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'ClientWrite'", "1"));
  EXPECT_TRUE(server_->Restart(GetParam()));
  ExpectNothingIsLeft();
}

TEST_P(RestartedServer, EndsATrainingThatReadsDirectly) {
  EXPECT_THAT(RestartedIn(kLongTraining,
                          "SELECT count(*) FROM sluice.jobs WHERE id = 2 AND rows_trained > 0"),
              IsTold());
  ExpectNothingIsLeft();
  // Cancelled where the session's end was noticed first.
  EXPECT_THAT(Direct("SELECT state FROM sluice.jobs WHERE id = 2"),
              AnyOf("FAILED\n", "CANCELLED\n"));
}

TEST_P(RestartedServer, EndsACopyThroughTheSession) {
  EXPECT_THAT(
      RestartedIn(fmt::format("{}SELECT {} FROM mine LABEL y INTO m", kThroughSession, kSlowRows),
                  "SELECT least(count(*), 1) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"),
      IsTold());
  ExpectNothingIsLeft();
}

// Its rows have been read, but its client's session is gone.
TEST_P(RestartedServer, EndsATrainingOfRowsFromTheSession) {
  EXPECT_THAT(RestartedIn(fmt::format("{}SELECT a.x, b.x AS z, a.y FROM mine a, points b TO TRAIN"
                                      " DNNClassifier WITH model.hidden_units=[64, 64],"
                                      " train.epoch=20000 LABEL y INTO m",
                                      kThroughSession),
                          "SELECT count(*) FROM sluice.jobs WHERE id = 2 AND rows_trained > 0"),
              IsTold());
  ExpectNothingIsLeft();
  // As above: either end may be noticed first.
  EXPECT_THAT(Direct("SELECT state FROM sluice.jobs WHERE id = 2"),
              AnyOf("FAILED\n", "CANCELLED\n"));
}

TEST_P(RestartedServer, EndsATrainingWhoseModelIsBeingStored) {
  const BackgroundProcess locker(
      fmt::format("exec psql -XAtq '{}postgres' -c 'BEGIN; LOCK TABLE sluice.models IN EXCLUSIVE"
                  " MODE; SELECT pg_sleep(60)' 2>&1",
                  server_->url_prefix()));
  ASSERT_TRUE(Becomes(Running("LOCK TABLE"), "1"));
  EXPECT_THAT(
      RestartedIn(fmt::format("{}SELECT x, y FROM mine TO TRAIN xgboost.gbtree LABEL y INTO m",
                              kThroughSession),
                  "SELECT least(count(*), 1) FROM pg_locks WHERE NOT granted AND relation ="
                  " 'sluice.models'::regclass"),
      IsTold());
  ExpectNothingIsLeft();
  // A fast end may let it be stored just before; then its job has succeeded.
  EXPECT_EQ(Direct("SELECT (state = 'SUCCEEDED') = (SELECT count(*) = 1 FROM sluice.model_versions"
                   " WHERE job = 2) FROM sluice.jobs WHERE id = 2"),
            "t\n");
}

INSTANTIATE_TEST_SUITE_P(All, RestartedServer, ::testing::Values("fast", "immediate"),
                         [](const auto& mode) { return std::string(mode.param); });

}  // namespace
}  // namespace sluice
