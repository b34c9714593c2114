#include <gmock/gmock.h>

#include "tests/process/cluster_job.h"
#include "tests/support/postgres_server.h"

// Jobs on processes read as their session would, even in other processes.
namespace sluice::executor {
namespace {

class SessionJobs : public ClusterJobs {
 protected:
  void SetUp() override {
    if (database_.url().empty()) {
      GTEST_SKIP() << "no PostgreSQL";
    }
    UseDatabase(
        database_.url(),
        "DO $$ BEGIN CREATE ROLE sluice_low; EXCEPTION WHEN duplicate_object OR unique_violation"
        " THEN NULL; END $$");
    for (const char* sql :
         {"CREATE SCHEMA theirs", "CREATE TABLE points (a float8, b float8, y integer)",
          "CREATE TABLE theirs.points AS SELECT i, (i % 100) / 50.0::float8 - 1 AS a,"
          " (i % 97) / 50.0::float8 - 1 AS b, i / 4 % 2 AS y, 't' || i % 4 AS tenant"
          " FROM generate_series(1, 40000) AS i",
          "ALTER TABLE theirs.points ENABLE ROW LEVEL SECURITY",
          "CREATE POLICY tenants ON theirs.points USING (tenant = current_setting('app.tenant'))",
          "GRANT USAGE ON SCHEMA theirs TO sluice_low",
          "GRANT SELECT ON theirs.points TO sluice_low"}) {
      Do(sql);
    }
  }
  void Do(const std::string& sql) {
    const Status done = source_->Execute(sql, nullptr, {}).status();
    ASSERT_TRUE(done.ok()) << sql << "\n" << done.ToString();
  }

  testing::PostgresTestDatabase database_;
};

TEST_F(SessionJobs, WorkersReadWhatTheSessionReads) {
  LocalCluster cluster(Machine(4));
  Do("SET search_path = theirs");
  Do("SET ROLE sluice_low");
  Do("SET app.tenant = 't3'");
  const int64_t rows = Ask(*source_, "SELECT count(*) FROM points");
  ASSERT_EQ(rows, 10'000);
  for (const std::string from : {"points", "points ORDER BY i"}) {
    RecordingSink sink;
    const std::string sql =
        "SELECT a, b, y FROM " + from +
        " TO TRAIN DNNClassifier WITH model.hidden_units=[8], split.kind='none',"
        " train.epoch=1, engine.num_workers=2, engine.max_workers=2 LABEL y"
        " INTO m";
    ASSERT_TRUE(source_->BeginStatement(sql, {}).ok());
    const Status status = Run(sql, cluster, *source_, sink);
    source_->EndStatement();
    ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_EQ(sink.Number("rows"), static_cast<double>(rows)) << from;
  }
}

}  // namespace
}  // namespace sluice::executor
