#include <gmock/gmock.h>

#include <stop_token>
#include <thread>

#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "catalog/model_store.h"
#include "server/statements/session.h"
#include "server/statements/statement.h"
#include "tests/support/recording_sink.h"

// A statement with an endless select is stopped at every stage.
namespace sluice::server {
namespace {

constexpr const char* kEndlessSelect =
    "SELECT v AS a, v AS y FROM (WITH RECURSIVE s(v) AS (VALUES (1) UNION ALL SELECT v + 1 FROM s)"
    " SELECT v FROM s) WHERE v < 0 ";

class StatementCancelTest : public ::testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(
    Statements, StatementCancelTest,
    ::testing::Values(std::string("EXPLAIN ") + kEndlessSelect +
                          "TO TRAIN LinearClassifier LABEL y INTO m",
                      std::string(kEndlessSelect) + "LABEL y INTO m",
                      std::string(kEndlessSelect) + "TO PREDICT p.y USING known",
                      std::string(kEndlessSelect) + "TO EVALUATE known",
                      "SELECT a, y FROM t TO TRAIN LinearClassifier WITH validation.select='" +
                          std::string(kEndlessSelect) + "' LABEL y INTO m",
                      kEndlessSelect));

TEST_P(StatementCancelTest, EndsWith57014) {
  const catalog::Database database = catalog::OpenDatabase("sqlite::memory:").value();
  Session session(*database.source, *database.catalog, "tester");
  RecordingSink sink;
  const Status made = RunScript(
      "CREATE TABLE t (a integer, y integer); INSERT INTO t VALUES (1, 0), (2, 1), (3, 0), (4, 1);"
      "SELECT a, y FROM t TO TRAIN LinearClassifier WITH split.kind='none' LABEL y INTO known",
      session, sink);
  ASSERT_TRUE(made.ok()) << made.ToString();
  std::stop_source stop;
  session.set_stop(stop.get_token());
  Status status;
  {
    const std::jthread canceller([&] {
      // It has most likely begun; otherwise it would end the same way.
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      stop.request_stop();
    });
    status = RunScript(GetParam(), session, sink);
  }
  EXPECT_EQ(status.sqlstate(), "57014") << status.ToString();
  EXPECT_EQ(database.catalog->models().List().value().size(), 1U);
  EXPECT_FALSE(database.source->ResolveTable({"", "p"}).value().has_value());
  session.set_stop({});
  EXPECT_TRUE(RunScript("SELECT a, y FROM t TO EVALUATE known", session, sink).ok());
}

}  // namespace
}  // namespace sluice::server
