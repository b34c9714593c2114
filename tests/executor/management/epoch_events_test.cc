// WAIT JOB and SHOW JOB of a job with thousands of epochs, each of which has left two events.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>

#include "base/clock.h"
#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "catalog/job_store.h"
#include "executor/executor.h"
#include "executor/jobs/job_record.h"
#include "executor/management/show_jobs.h"
#include "executor/management/wait_for_job.h"
#include "planner/plan.pb.h"
#include "tests/support/recording_sink.h"

namespace sluice::executor {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

class EpochEvents : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/sluice-epoch-events-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    catalog::Database database = catalog::OpenDatabase("sqlite:" + folder_ + "/test.db").value();
    source_ = std::move(database.source);
    catalog_ = std::move(database.catalog);
    catalog::Job job;
    job.kind = "train";
    job_ = JobRecord::Start(*catalog_, std::move(job), {}).value();
    std::vector<catalog::JobEvent> events;
    for (int i = 1; i <= 12; ++i) {
      events.push_back({WallMicros(), "worker_lost", "worker " + std::to_string(i)});
    }
    for (int epoch = 1; epoch <= 1000; ++epoch) {
      events.push_back({WallMicros(), "epoch_done", "epoch " + std::to_string(epoch)});
      events.push_back({WallMicros(), "evaluation_done", "epoch " + std::to_string(epoch)});
    }
    ASSERT_TRUE(catalog_->jobs().AddEvents(job_->id(), events).ok());
  }
  void TearDown() override {
    job_.reset();
    source_.reset();
    catalog_.reset();
    std::filesystem::remove_all(folder_);
  }
  Context ContextOf(std::stop_token stop = {}) {
    return {*source_, *catalog_, "tester", "", std::move(stop)};
  }

  std::string folder_;
  std::unique_ptr<catalog::DataSource> source_;
  std::unique_ptr<catalog::Catalog> catalog_;
  std::unique_ptr<JobRecord> job_;
};

TEST_F(EpochEvents, WaitJobShowsTheOtherOnes) {
  std::stop_source stop;
  RecordingSink sink;
  sink.on_notice = [&](const std::string& notice) {
    if (notice.ends_with("worker 12")) {
      job_->Event("epoch_done", "epoch 1001");
      job_->Event("worker_started", "worker 13");
      job_->Flush();
    } else if (notice.ends_with("worker 13")) {
      stop.request_stop();
    }
  };
  plan::JobPlan plan;
  plan.set_action(plan::JobPlan::WAIT);
  plan.set_job(job_->id());
  Context context = ContextOf(stop.get_token());
  EXPECT_EQ(WaitForJob(plan, context, sink).code(), Code::kCancelled);
  ASSERT_EQ(sink.notices.size(), 12U);
  EXPECT_EQ(sink.notices.front(), "2 earlier events: SHOW JOB " + std::to_string(job_->id()));
  EXPECT_THAT(sink.notices[1], EndsWith("worker_lost worker 3"));
  EXPECT_THAT(sink.notices.back(), EndsWith("worker_started worker 13"));
}

TEST_F(EpochEvents, ShowJobHasTheLastOnes) {
  RecordingSink sink;
  Context context = ContextOf();
  ASSERT_TRUE(ShowJob(job_->id(), {}, context, sink).ok());
  std::vector<std::string> events;
  for (const std::vector<Value>& row : sink.rows) {
    if (row[0] == Value(std::string("event"))) {
      events.push_back(std::get<std::string>(row[1]) + " " + std::get<std::string>(row[2]));
    }
  }
  ASSERT_EQ(events.size(), 1 + 12 + 20U);
  EXPECT_EQ(events[0], "(left out) 1980 of earlier epochs; sluice.job_events has them");
  EXPECT_THAT(events[1], EndsWith("worker 1"));
  EXPECT_THAT(events[13], HasSubstr("epoch_done"));
  EXPECT_THAT(events[13], EndsWith("epoch 991"));
  EXPECT_THAT(events.back(), EndsWith("epoch 1000"));
}

}  // namespace
}  // namespace sluice::executor
