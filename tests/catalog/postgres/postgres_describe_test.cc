#include <gmock/gmock.h>

#include <memory>
#include <stop_token>
#include <string>
#include <thread>

#include "catalog/postgres/postgres_columns_internal.h"
#include "catalog/postgres/postgres_connection_internal.h"
#include "catalog/postgres/postgres_explain_internal.h"
#include "tests/catalog/both_databases.h"

// What a connection asks about a select, in one round trip.
namespace sluice::catalog {
namespace {

class PostgresDescribeTest : public BothDatabases {
 protected:
  void SetUp() override {
    BothDatabases::SetUp();
    if (IsSkipped()) {
      return;
    }
    MakeNumbers(10);
    connection_ = PostgresConnection::Connect({url(), ""}).value();
  }
  void TearDown() override {
    connection_.reset();
    BothDatabases::TearDown();
  }
  void BeginReading() { ASSERT_TRUE(connection_->BeginReading("BEGIN READ ONLY; SELECT 1").ok()); }

  std::unique_ptr<PostgresConnection> connection_;
};

TEST_P(PostgresDescribeTest, APlanThatIsAskedForWhileReadingBringsTheColumns) {
  const std::string select = "SELECT id FROM t";
  BeginReading();
  ASSERT_TRUE(ExplainPostgresSelect(*connection_, select, true).ok());
  // Asked again, the server would answer that the transaction has failed.
  EXPECT_FALSE(connection_->Ask("SELECT 1/0").ok());
  const auto schema = DescribePostgresSelect(*connection_, select);
  ASSERT_TRUE(schema.ok()) << schema.status().ToString();
  EXPECT_EQ(schema->columns.at(0).name, "id");
  EXPECT_FALSE(DescribePostgresSelect(*connection_, "SELECT id AS other FROM t").ok());
}

TEST_P(PostgresDescribeTest, AnErrorHasItsPlaceInTheSelectAndLeavesTheConnectionUsable) {
  for (const bool describe : {false, true}) {
    const auto plan = ExplainPostgresSelect(*connection_, "SELECT wrong FROM t", describe);
    EXPECT_EQ(plan.status().sqlstate(), "42703");
    EXPECT_EQ(plan.status().diagnostics().at(0).span.begin, 7);
  }
  const auto schema = DescribePostgresSelect(*connection_, "SELECT id, wrong FROM t");
  EXPECT_EQ(schema.status().sqlstate(), "42703");
  EXPECT_EQ(schema.status().diagnostics().at(0).span.begin, 11);
  EXPECT_TRUE(DescribePostgresSelect(*connection_, "SELECT id FROM t").ok());
  EXPECT_TRUE(connection_->Ask("SELECT 1").ok());
}

TEST_P(PostgresDescribeTest, AStopEndsTheWaitForALock) {
  const auto other = PostgresConnection::Connect({url(), ""}).value();
  ASSERT_TRUE(other->Begin("BEGIN; LOCK TABLE t").ok());
  std::stop_source stop;
  connection_->HearStop(stop.get_token());
  std::jthread stopping([&] {
    bool waits = false;
    while (!waits) {
      const auto found =
          other->Query("SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 't'::regclass", {});
      ASSERT_TRUE(found.ok()) << found.status().ToString();
      waits = !found->empty();
    }
    stop.request_stop();
  });
  EXPECT_EQ(DescribePostgresSelect(*connection_, "SELECT id FROM t").status().sqlstate(), "57014");
  stopping.join();
  other->Rollback();
  connection_->IgnoreStop();
  // A server that is too busy to take the cancel request has cost the connection (08006).
  const auto after = DescribePostgresSelect(*connection_, "SELECT id FROM t");
  EXPECT_TRUE(after.ok() || after.status().sqlstate() == "08006") << after.status().ToString();
}

TEST_P(PostgresDescribeTest, AServerThatEndsTheSessionIsSaidToBeGone) {
  const auto other = PostgresConnection::Connect({url(), ""}).value();
  ASSERT_TRUE(other
                  ->Ask("SELECT pg_terminate_backend($1::integer)",
                        std::vector<SqlParameter>{int64_t{PQbackendPID(connection_->handle())}})
                  .ok());
  const auto plan = ExplainPostgresSelect(*connection_, "SELECT id FROM t", true);
  EXPECT_THAT(plan.status().sqlstate(), ::testing::AnyOf("57P01", "08006"));
  EXPECT_EQ(DescribePostgresSelect(*connection_, "SELECT 1").status().sqlstate(), "08006");
}

INSTANTIATE_TEST_SUITE_P(Databases, PostgresDescribeTest, ::testing::Values("postgresql"),
                         DatabaseName);

}  // namespace
}  // namespace sluice::catalog
