#include <gmock/gmock.h>

#include "tests/process/pods_fixture.h"

// Boosted trees on pods.
namespace sluice::executor {
namespace {

std::string TreesText(const std::string& model, const std::string& attributes) {
  return "SELECT a, b, y FROM points TO TRAIN xgboost.gbtree WITH train.num_boost_round=80, "
         "subsample=0.8, " +
         attributes + " LABEL y INTO " + model;
}

TEST_F(Pods, TreesAreThoseOfOneProcessWhicheverPodsAreKilled) {
  ASSERT_TRUE(TrainHereBy(TreesText("here", "engine.strategy='local'")).ok());
  RecordingSink sink;
  Status status;
  int killed = 0;
  {
    const std::jthread node([&](const std::stop_token& stop) {
      const auto happened = [&](const std::string& kind, int times) {
        return Eventually([&] { return stop.stop_requested() || Count(2, kind) >= times; }) &&
               !stop.stop_requested();
      };
      const auto end = [&](const std::string& role) {
        const std::vector<std::string> pods = kubelet_->Running(role);
        killed += !pods.empty() && kubelet_->Kill(pods.back()) ? 1 : 0;
      };
      if (happened("worker_started", 2)) {
        end("worker");
      }
      if (happened("worker_lost", 1)) {
        end("master");
      }
      if (happened("master_took_over", 1)) {
        end("worker");
      }
    });
    status = TrainBy(TreesText("m", "engine.num_workers=2, engine.max_workers=2"), sink);
  }
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_GE(killed, 2) << ::testing::PrintToString(Events(2));
  EXPECT_EQ(Sha("m"), Sha("here")) << ::testing::PrintToString(Events(2));
  EXPECT_TRUE(kubelet_->Started("ps").empty());
  ExpectNothingLeft();
}

}  // namespace
}  // namespace sluice::executor
