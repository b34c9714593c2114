// What is stored about a training while it runs: series of points, however long it takes.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "catalog/job_store.h"
#include "elastic/job/training_job.h"
#include "executor/jobs/job_record.h"
#include "executor/jobs/metric_points.h"

namespace sluice::executor {
namespace {

TimePoint Seconds(double seconds) {
  return std::chrono::duration_cast<TimePoint>(std::chrono::duration<double>(seconds));
}

// A training that reports four times a second, for a day.
TEST(MetricPoints, TheWholeCurveIsKeptHoweverLongItIs) {
  MetricPoints points(Seconds(0));
  std::vector<int64_t> stored;  // the second of each point
  for (int64_t quarter = 1; quarter <= 4 * 86'400; ++quarter) {
    if (!points.TakeIfDue(Seconds(static_cast<double>(quarter) / 4))) {
      continue;
    }
    stored.push_back(quarter / 4);
    if (points.Stored({{0, 1, catalog::kJobRowsMetric, 1}, {0, 1, catalog::kJobLossMetric, 1}})) {
      std::vector<int64_t> left;
      for (size_t i = 0; i < stored.size(); ++i) {
        if (i % 2 == 0 || i + 1 == stored.size()) {
          left.push_back(stored[i]);
        }
      }
      stored = std::move(left);
      EXPECT_FALSE(points.Thinned());
    }
    ASSERT_LT(stored.size(), 2'000U);
  }
  EXPECT_GT(stored.size(), 1'000U);
  EXPECT_EQ(stored.front(), 1);
  EXPECT_GT(stored.back(), 86'400 - 65);
  for (size_t i = 1; i < stored.size(); ++i) {
    EXPECT_LE(stored[i] - stored[i - 1], 64 + 1) << "a gap at " << stored[i - 1];
  }
}

class JobMetrics : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/sluice-job-metrics-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    catalog_ = catalog::OpenCatalog("sqlite:" + folder_ + "/test.db").value();
    job_ = JobRecord::Start(*catalog_, {}, {}).value();
  }
  void TearDown() override {
    job_.reset();
    catalog_.reset();
    std::filesystem::remove_all(folder_);
  }

  static elastic::Progress At(int64_t rows, double loss) {
    elastic::Progress progress;
    progress.rows_done = rows;
    progress.rows_read = rows;
    progress.rows_per_second = 10;
    progress.epoch = elastic::Epoch(3);
    progress.loss = loss;
    progress.workers = 2;
    return progress;
  }
  std::map<std::string, std::vector<catalog::JobMetric>> Series() {
    std::map<std::string, std::vector<catalog::JobMetric>> series;
    const std::vector<catalog::JobMetric> all = catalog_->jobs().Metrics(job_->id()).value();
    for (const catalog::JobMetric& metric : all) {
      series[metric.name].push_back(metric);
    }
    return series;
  }

  std::string folder_;
  std::unique_ptr<catalog::Catalog> catalog_;
  std::unique_ptr<JobRecord> job_;
};

TEST_F(JobMetrics, AreStoredWhileTheJobRuns) {
  for (int64_t rows = 1; Series()["loss"].size() < 2; ++rows) {
    job_->Progress(At(rows, 1.0 / static_cast<double>(rows)));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  auto series = Series();
  const std::vector<catalog::JobMetric>& loss = series["loss"];
  EXPECT_EQ(loss[0].step, 3);
  EXPECT_EQ(loss[0].value, 1.0 / series["rows"][0].value);
  EXPECT_EQ(series["rows_per_second"][0].value, 10);
  EXPECT_EQ(series["workers"][0].value, 2);
  ASSERT_TRUE(job_->Finish(OkStatus()).ok());
}

TEST_F(JobMetrics, TheLastPointIsStoredAtTheEnd) {
  job_->Progress(At(0, 0));
  job_->Progress(At(7, 0.5));
  ASSERT_TRUE(job_->Finish(Cancelled("stopped")).code() == Code::kCancelled);
  auto series = Series();
  ASSERT_EQ(series["rows"].size(), 1U);
  EXPECT_EQ(series["rows"][0].value, 7);
  EXPECT_EQ(series["loss"][0].value, 0.5);
}

TEST_F(JobMetrics, BeforeTheFirstRowThereIsNoLoss) {
  job_->Progress(At(0, 0));
  ASSERT_TRUE(job_->Finish(OkStatus()).ok());
  auto series = Series();
  EXPECT_EQ(series["rows"].size(), 1U);
  EXPECT_EQ(series["loss"].size(), 0U);
}

TEST_F(JobMetrics, ALockedDatabaseGetsThemLater) {
  const auto other = catalog::OpenDataSource("sqlite:" + folder_ + "/test.db").value();
  ASSERT_TRUE(other->Execute("BEGIN IMMEDIATE", nullptr, {}).ok());
  job_->Workers({1, 1, 1, 8});
  // The job's own thread waits first for the lock, and then reports that it lives.
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  job_->Flush();
  EXPECT_EQ(Series()["workers_now"].size(), 0U);
  ASSERT_TRUE(other->Execute("ROLLBACK", nullptr, {}).ok());
  job_->Flush();
  EXPECT_EQ(Series()["workers_now"].size(), 1U);
  const Status finished = job_->Finish(OkStatus());
  EXPECT_TRUE(finished.ok()) << finished.ToString();
}

TEST_F(JobMetrics, AFullSeriesIsThinned) {
  constexpr int64_t kChanges = 4'500;
  for (int64_t i = 0; i < kChanges; ++i) {
    job_->Workers({i, 1, 1, 8});
    if (i % 100 == 0) {
      job_->Flush();
    }
  }
  ASSERT_TRUE(job_->Finish(OkStatus()).ok());
  auto series = Series();
  const std::vector<catalog::JobMetric>& workers = series["workers_now"];
  EXPECT_LT(workers.size(), 2'000U);
  EXPECT_GT(workers.size(), 500U);
  EXPECT_EQ(workers.front().value, 0);
  EXPECT_EQ(workers.back().value, kChanges - 1);
}

}  // namespace
}  // namespace sluice::executor
