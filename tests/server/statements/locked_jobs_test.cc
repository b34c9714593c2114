#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <stop_token>
#include <thread>

#include "catalog/job_store.h"
#include "catalog/model_store.h"
#include "executor/local/local_cluster.h"
#include "server/statements/session.h"
#include "server/statements/statement.h"
#include "tests/catalog/both_databases.h"
#include "tests/support/eventually.h"
#include "tests/support/recording_sink.h"

// Another session holds locks on the tables of jobs and models until the statement has ended: each
// of these would hang otherwise.
namespace sluice::server {
namespace {

class LockedJobsTest : public catalog::BothDatabases {
 protected:
  void SetUp() override {
    BothDatabases::SetUp();
    if (IsSkipped()) {
      return;
    }
    Run("CREATE TABLE t (a integer, y integer)");
    Run("INSERT INTO t VALUES (1, 0), (2, 1), (3, 0), (4, 1)");
    other_ = std::move(catalog::OpenDataSource(url())).value();
    const Status made = RunSql(
        "SELECT a, y FROM t TO TRAIN LinearClassifier WITH split.kind='none' LABEL y INTO known");
    ASSERT_TRUE(made.ok()) << made.ToString();
  }

  Status RunSql(const std::string& sql, std::stop_token stop = {}) {
    Session session(source(), catalog(), "tester", &cluster_);
    session.set_stop(std::move(stop));
    return RunScript(sql, session, sink_);
  }
  void Lock(const std::string& table) {
    ASSERT_TRUE(other_->Execute(postgres() ? "BEGIN" : "BEGIN IMMEDIATE", nullptr, {}).ok());
    if (postgres()) {
      const auto locked =
          other_->Execute("LOCK TABLE sluice." + table + " IN ACCESS EXCLUSIVE MODE", nullptr, {});
      ASSERT_TRUE(locked.ok()) << locked.status().ToString();
    }
  }
  void Unlock() { ASSERT_TRUE(other_->Execute("ROLLBACK", nullptr, {}).ok()); }

  // Stopped while it waits for the lock.
  Status Stopped(const std::string& sql) {
    std::stop_source stop;
    auto done = std::async(std::launch::async, [&] { return RunSql(sql, stop.get_token()); });
    if (postgres()) {
      EXPECT_TRUE(Eventually([this] { return Waiting() > 0; }));
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));  // most likely it waits by then
    }
    stop.request_stop();
    return done.get();
  }

  // Backends of this database that wait for a lock.
  int64_t Waiting() {
    struct First final : catalog::RowReceiver {
      Status Header(const Schema&) override { return OkStatus(); }
      Status Rows(const RowBatch& batch) override {
        number = batch.columns[0].int64s[0];
        return OkStatus();
      }
      int64_t number = 0;
    } first;
    const auto asked = other_->Execute(
        "SELECT count(*) FROM pg_locks AS l JOIN pg_database AS d ON d.oid = l.database"
        " WHERE d.datname = current_database() AND NOT l.granted",
        &first, {});
    EXPECT_TRUE(asked.ok()) << asked.status().ToString();
    return first.number;
  }

  executor::LocalCluster cluster_{executor::LocalCluster::Options()};
  std::unique_ptr<catalog::DataSource> other_;
  RecordingSink sink_;
};

ON_BOTH_DATABASES(LockedJobsTest);

TEST_P(LockedJobsTest, WhoeverWaitsForTheLockHearsTheStop) {
  struct Case {
    const char* sql;
    const char* table;
    bool writes;  // SQLite lets readers through
  };
  const Case cases[] = {
      {"SELECT a, y FROM t TO TRAIN LinearClassifier LABEL y INTO m", "jobs", true},
      {"SELECT a, y FROM t TO PREDICT p.y USING known", "jobs", true},
      {"SELECT a, y FROM t TO EVALUATE known INTO e", "jobs", true},
      {"DROP MODEL known", "models", true},
      {"ALTER MODEL known PROMOTE 1", "models", true},
      {"CANCEL JOB 1", "jobs", false},
      {"DROP JOB 1", "jobs", false},
      {"SHOW JOBS", "jobs", false},
      {"SHOW JOB 1", "jobs", false},
      {"WAIT JOB 1", "jobs", false},
      {"SHOW MODELS", "model_versions", false},
      {"DESCRIBE MODEL known", "model_versions", false},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.sql);
    if (!postgres() && !one.writes) {
      continue;
    }
    Lock(one.table);
    const Status status = Stopped(one.sql);
    EXPECT_EQ(status.sqlstate(), "57014") << status.ToString();
    Unlock();
  }
  EXPECT_EQ(catalog().models().List().value().size(), 1U);
  EXPECT_EQ(catalog().jobs().List().value().size(), 1U) << "what was stopped began no job";
  EXPECT_TRUE(RunSql("SELECT a, y FROM t TO EVALUATE known").ok());
}

// The end of a running job is recorded as soon as the lock is free.
TEST_P(LockedJobsTest, ACancelledJobsEndIsWrittenLater) {
  Run("INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < "
      "20000)"
      " SELECT i, i % 2 FROM n");
  std::stop_source stop;
  bool locked = false;
  sink_.on_progress = [&] {
    if (!locked) {
      locked = true;
      Lock("jobs");
      stop.request_stop();
    }
  };
  const Status status = RunSql(
      "SELECT a, y FROM t TO TRAIN LinearClassifier WITH train.epoch=100000,"
      " engine.strategy=local, split.kind='none' LABEL y INTO m",
      stop.get_token());
  ASSERT_TRUE(locked);
  EXPECT_EQ(status.sqlstate(), "57014") << status.ToString();
  Unlock();
  catalog::Job job = catalog().jobs().Find(2).value();
  EXPECT_TRUE(Eventually([&] {
    job = catalog().jobs().Find(2).value();
    return job.state != catalog::JobState::kRunning;
  }));
  EXPECT_EQ(job.state, catalog::JobState::kCancelled) << job.error;
}

}  // namespace
}  // namespace sluice::server
