#include <fmt/core.h>
#include <gmock/gmock.h>

#include <string>

#include "tests/process/pods_fixture.h"

// A job on pods whose snapshot ends with the connection of its master.
namespace sluice::executor {
namespace {

TEST_F(Pods, AJobBeginsAgainWithTheFirstWorkerThatFindsNoSnapshot) {
  RecordingSink sink;
  Status status;
  bool lost = false;
  {
    const std::jthread killer([&](const std::stop_token& stop) {
      EXPECT_TRUE(Eventually([&] { return stop.stop_requested() || Count(1, "epoch_done") >= 1; }));
      for (const std::string& worker : kubelet_->Running("worker")) {
        lost = kubelet_->Kill(worker) || lost;
      }
      Ask(*admin_, fmt::format("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
                               "WHERE usename = '{}' AND datname = current_database()",
                               user_));
    });
    status = Train("m",
                   "train.epoch=30, engine.seed=5, engine.num_workers=2, engine.max_workers=2, "
                   "engine.num_ps=2, engine.sync=true, engine.new_snapshot=true",
                   sink);
  }
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_TRUE(lost);
  EXPECT_EQ(Count(1, elastic::kDatabaseWaits), 1) << ::testing::PrintToString(Events(1));
  EXPECT_EQ(kubelet_->Started("master").size(), 1U);
  // Both at first, one or both that find no snapshot, both of the training that begins again.
  EXPECT_LE(kubelet_->Started("worker").size(), 2U + 3U + 2U)
      << ::testing::PrintToString(Events(1));
  ExpectNothingLeft();
}

}  // namespace
}  // namespace sluice::executor
