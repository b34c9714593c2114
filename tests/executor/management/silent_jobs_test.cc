// Jobs on pods in a namespace that nobody looks after any more.
#include <gtest/gtest.h>

#include <string>

#include "base/clock.h"
#include "catalog/catalog.h"
#include "executor/executor.h"
#include "executor/management/job_verbs.h"
#include "executor/management/show_jobs.h"
#include "planner/plan.pb.h"
#include "tests/executor/sqlite_test.h"
#include "tests/support/recording_sink.h"

namespace sluice::executor {
namespace {

class SilentJobs : public SqliteTest {
 protected:
  int64_t Create(int64_t minutes_ago) {
    catalog::Job job;
    job.kind = "train";
    job.started_micros = WallMicros();
    job.runner.place = "pods/team-b/some-uid";
    job.runner.pid = 1;
    job.runner.seen_micros = WallMicros() - minutes_ago * 60'000'000;
    return catalog_->jobs().Create(job).value();
  }
  std::string PlaceShown() {
    RecordingSink sink;
    Context context{*source_, *catalog_, "tester", "SHOW JOBS", {}, nullptr};
    EXPECT_TRUE(ShowJobs({}, context, sink).ok());
    return std::get<std::string>(sink.Cell("place"));
  }
  void Cancel(int64_t job) {
    plan::JobPlan plan;
    plan.set_action(plan::JobPlan::CANCEL);
    plan.set_job(job);
    RecordingSink sink;
    Context context{*source_, *catalog_, "tester", "CANCEL JOB", {}, nullptr};
    const Status cancelled = ExecuteJob(plan, context, sink);
    EXPECT_TRUE(cancelled.ok()) << cancelled.ToString();
  }
};

TEST_F(SilentJobs, AreShownAsSuch) {
  Create(20);
  EXPECT_EQ(PlaceShown(), "pods in team-b, silent for 20 minutes");
}

TEST_F(SilentJobs, AreCancelledAtOnce) {
  const int64_t job = Create(20);
  Cancel(job);
  EXPECT_EQ(catalog_->jobs().Find(job)->state, catalog::JobState::kCancelled);
}

TEST_F(SilentJobs, AreNotThoseThatWereHeardAMomentAgo) {
  const int64_t job = Create(0);
  EXPECT_EQ(PlaceShown(), "pods in team-b");
  Cancel(job);
  EXPECT_EQ(catalog_->jobs().Find(job)->state, catalog::JobState::kRunning) << "its master ends it";
}

}  // namespace
}  // namespace sluice::executor
