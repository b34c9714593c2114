// The row counts in a job's row while it runs, and after it was interrupted.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <thread>

#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "catalog/job_store.h"
#include "executor/executor.h"
#include "executor/jobs/job_record.h"
#include "parser/parser.h"
#include "planner/plan.pb.h"
#include "planner/planner.h"
#include "tests/support/extended_of.h"
#include "tests/support/recording_sink.h"

namespace sluice::executor {
namespace {

// Cancels the statement at the first rows, or when the first have been trained: earlier progress
// may tell of reading alone.
class CancellingSink final : public ResultSink {
 public:
  explicit CancellingSink(std::stop_source& stop) : stop_(stop) {}
  Status Header(const Schema&) override { return OkStatus(); }
  Status Rows(const RowBatch&) override {
    stop_.request_stop();
    return OkStatus();
  }
  void Notice(const std::string&) override {}
  void Progress(const elastic::Progress& progress) override {
    if (progress.rows_done > 0) {
      stop_.request_stop();
    }
  }
  void Done(const std::string&) override {}

 private:
  std::stop_source& stop_;
};

class JobRowsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/sluice-job-rows-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    catalog::Database database = catalog::OpenDatabase("sqlite:" + folder_ + "/test.db").value();
    source_ = std::move(database.source);
    catalog_ = std::move(database.catalog);
    ASSERT_TRUE(source_
                    ->Execute("CREATE TABLE t AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT "
                              "i + 1 FROM n WHERE i < 50000) SELECT i, i % 97 AS a, i % 2 AS y "
                              "FROM n",
                              nullptr, {})
                    .ok());
  }
  void TearDown() override {
    source_.reset();
    catalog_.reset();
    std::filesystem::remove_all(folder_);
  }

  Status Run(const std::string& sql, std::stop_source& stop, ResultSink& sink) {
    ASSIGN_OR_RETURN(const auto statements, parser::Parse(sql));
    const auto extended = ExtendedOf(statements.front());
    ASSIGN_OR_RETURN(const plan::Plan plan,
                     planner::MakePlan(*extended, *source_, catalog_->models(), {}));
    Context context{*source_, *catalog_, "tester", sql, stop.get_token()};
    return Execute(plan, context, sink);
  }

  // The job of a statement that was cancelled while it ran.
  catalog::Job Cancel(const std::string& sql) {
    std::stop_source stop;
    CancellingSink sink(stop);
    EXPECT_EQ(Run(sql, stop, sink).code(), Code::kCancelled);
    const catalog::Job job = catalog_->jobs().List(1).value().front();
    EXPECT_EQ(job.state, catalog::JobState::kCancelled);
    return job;
  }

  std::string folder_;
  std::unique_ptr<catalog::DataSource> source_;
  std::unique_ptr<catalog::Catalog> catalog_;
};

TEST_F(JobRowsTest, ACancelledTrainingTellsItsRows) {
  const catalog::Job job = Cancel(
      "SELECT a, y FROM t TO TRAIN LinearClassifier WITH train.epoch=100000, engine.strategy=local "
      "LABEL "
      "y INTO m");
  EXPECT_GT(job.rows_trained, 0);
  EXPECT_GT(job.rows_read, 0);
}

TEST_F(JobRowsTest, CancelledTreesTellTheirRows) {
  const catalog::Job job = Cancel(
      "SELECT a, y FROM t TO TRAIN xgboost.gbtree WITH train.num_boost_round=100000, "
      "objective='binary:logistic' LABEL y INTO m");
  EXPECT_GT(job.rows_read, 0);
}

TEST_F(JobRowsTest, ACancelledPredictionWithoutATableIsNoJob) {
  std::stop_source stop;
  RecordingSink sink;
  ASSERT_TRUE(Run("SELECT a, y FROM t TO TRAIN LinearClassifier WITH train.epoch=1 LABEL y INTO m",
                  stop, sink)
                  .ok());
  CancellingSink cancelling(stop);
  EXPECT_EQ(Run("SELECT a FROM t TO PREDICT y USING m", stop, cancelling).code(), Code::kCancelled);
  EXPECT_EQ(catalog_->jobs().Count().value(), 1);
}

TEST_F(JobRowsTest, AFailedEvaluationTellsItsRows) {
  std::stop_source stop;
  RecordingSink sink;
  ASSERT_TRUE(Run("SELECT a, y FROM t TO TRAIN LinearClassifier WITH train.epoch=1 LABEL y INTO m",
                  stop, sink)
                  .ok());
  EXPECT_FALSE(
      Run("SELECT a, CASE WHEN i = 50000 THEN 7 ELSE y END AS y FROM t TO EVALUATE m INTO e", stop,
          sink)
          .ok());
  const catalog::Job job = catalog_->jobs().List(1).value().front();
  EXPECT_EQ(job.state, catalog::JobState::kFailed);
  EXPECT_GT(job.rows_read, 0);
}

TEST_F(JobRowsTest, ARunningJobTellsItsRows) {
  const auto record = JobRecord::Start(*catalog_, catalog::Job(), {}).value();
  record->Rows(300, 200);
  catalog::Job job;
  for (int look = 0; look < 3'000 && job.rows_read == 0; ++look) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    job = catalog_->jobs().Find(record->id()).value();
  }
  EXPECT_EQ(job.state, catalog::JobState::kRunning);
  EXPECT_EQ(job.rows_read, 300);
  EXPECT_EQ(job.rows_trained, 200);
  record->Rows(400, 250);
  EXPECT_FALSE(record->Finish(Cancelled("enough")).ok());
  job = catalog_->jobs().Find(record->id()).value();
  EXPECT_EQ(job.rows_read, 400);
  EXPECT_EQ(job.rows_trained, 250);
}

}  // namespace
}  // namespace sluice::executor
