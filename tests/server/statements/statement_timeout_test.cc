#include <gmock/gmock.h>

#include <stop_token>
#include <thread>

#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "catalog/job_store.h"
#include "catalog/model_store.h"
#include "server/statements/session.h"
#include "server/statements/statement.h"
#include "tests/support/eventually.h"
#include "tests/support/postgres_server.h"
#include "tests/support/recording_sink.h"

// SET statement_timeout ends our statements as it ends PostgreSQL's own.
namespace sluice::server {
namespace {

using ::testing::HasSubstr;

class StatementTimeoutTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (database_.url().empty()) {
      GTEST_SKIP() << "no PostgreSQL server";
    }
    catalog::Database database = catalog::OpenDatabase(database_.url()).value();
    source_ = std::move(database.source);
    catalog_ = std::move(database.catalog);
    session_ = std::make_unique<Session>(*source_, *catalog_, "tester");
    const Status made = Run(
        "CREATE TABLE t (a integer, y integer); INSERT INTO t VALUES (1, 0), (2, 1), (3, 0), (4, "
        "1);"
        "SELECT a, y FROM t TO TRAIN LinearClassifier WITH split.kind='none' LABEL y INTO known");
    ASSERT_TRUE(made.ok()) << made.ToString();
  }
  Status Run(const std::string& sql) { return RunScript(sql, *session_, sink_); }

  testing::PostgresTestDatabase database_;
  std::unique_ptr<catalog::DataSource> source_;
  std::unique_ptr<catalog::Catalog> catalog_;
  std::unique_ptr<Session> session_;
  RecordingSink sink_;
};

constexpr const char* kSleeping = "SELECT a, y FROM t WHERE pg_sleep(600) IS NULL ";

INSTANTIATE_TEST_SUITE_P(Statements, StatementTimeoutTest,
                         ::testing::Values(std::string(kSleeping) +
                                               "TO TRAIN LinearClassifier LABEL y INTO m",
                                           std::string("EXPLAIN ") + kSleeping +
                                               "TO TRAIN LinearClassifier LABEL y INTO m",
                                           std::string(kSleeping) + "TO PREDICT p.y USING known",
                                           std::string(kSleeping) + "TO EVALUATE known",
                                           kSleeping));

TEST_P(StatementTimeoutTest, EndsTheStatement) {
  ASSERT_TRUE(Run("SET statement_timeout = '300ms'").ok());
  const Status status = Run(GetParam());
  EXPECT_EQ(status.sqlstate(), "57014") << status.ToString();
  EXPECT_EQ(status.message(), "canceling statement due to statement timeout");
  ASSERT_TRUE(Run("SET statement_timeout = '1min'").ok());
  const Status allowed = Run("SELECT a, y FROM t TO EVALUATE known");
  EXPECT_TRUE(allowed.ok()) << allowed.ToString();
  ASSERT_TRUE(Run("SET statement_timeout = 0").ok());
  EXPECT_TRUE(Run("SELECT a, y FROM t TO EVALUATE known").ok());
}

class StatementTimeoutOfAJob : public StatementTimeoutTest {};

INSTANTIATE_TEST_SUITE_P(
    Statements, StatementTimeoutOfAJob,
    ::testing::Values("SELECT a, y FROM t TO TRAIN LinearClassifier WITH train.epoch=100000,"
                      " engine.strategy=local, split.kind='none' LABEL y INTO m"));

TEST_P(StatementTimeoutOfAJob, IsRecordedWithItsReason) {
  ASSERT_TRUE(Run("INSERT INTO t SELECT i, i % 2 FROM generate_series(1, 20000) AS i").ok());
  const Status status = Run("SET statement_timeout = '1s'; " + GetParam());
  EXPECT_EQ(status.sqlstate(), "57014") << status.ToString();
  EXPECT_EQ(status.message(), "canceling statement due to statement timeout");
  const catalog::Job job = catalog_->jobs().List(1).value().front();
  EXPECT_EQ(job.state, catalog::JobState::kCancelled);
  EXPECT_THAT(job.error, HasSubstr("canceling statement due to statement timeout"));
  EXPECT_EQ(catalog_->models().List().value().size(), 1U);
}

// WAIT JOB in the session waits for a training of another session.
TEST_F(StatementTimeoutTest, EndsAWaitForAJobWhichGoesOn) {
  ASSERT_TRUE(Run("INSERT INTO t SELECT i, i % 2 FROM generate_series(1, 20000) AS i").ok());
  const catalog::Database other = catalog::OpenDatabase(database_.url()).value();
  std::stop_source stop;
  Session trains(*other.source, *other.catalog, "tester");
  trains.set_stop(stop.get_token());
  std::jthread training([&trains] {
    RecordingSink nobody;
    const Status status = RunScript(
        "SELECT a, y FROM t TO TRAIN LinearClassifier WITH train.epoch=100000,"
        " engine.strategy=local, split.kind='none' LABEL y INTO m",
        trains, nobody);
    EXPECT_EQ(status.sqlstate(), "57014") << status.ToString();
  });
  const auto newest = [this] { return catalog_->jobs().List(1).value().front(); };
  ASSERT_TRUE(Eventually([&] { return newest().model == "m"; }));
  const int64_t job = newest().id;
  const Status status = Run("SET statement_timeout = '300ms'; WAIT JOB " + std::to_string(job));
  EXPECT_EQ(status.sqlstate(), "57014") << status.ToString();
  EXPECT_EQ(status.message(), "canceling statement due to statement timeout");
  EXPECT_EQ(newest().state, catalog::JobState::kRunning);
  stop.request_stop();
}

}  // namespace
}  // namespace sluice::server
