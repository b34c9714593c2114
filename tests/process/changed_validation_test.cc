#include <gmock/gmock.h>

#include "tests/process/cluster_job.h"

// The rows of validation.select have changed when a job continues from a checkpoint: early stopping
// would compare values measured on different rows.
namespace sluice::executor {
namespace {

class ChangedValidation
    : public ClusterJobs,
      public ::testing::WithParamInterface<std::pair<const char*, const char*>> {
 protected:
  void SetUp() override {
    ClusterJobs::SetUp();
    ASSERT_TRUE(source_
                    ->Execute("CREATE TABLE held AS SELECT a, b, y FROM points WHERE i <= 3000",
                              nullptr, {})
                    .ok());
  }
  std::string Statement() const {
    return TrainText("m", std::string("train.epoch=400, train.early_stopping_rounds=300, "
                                      "train.save_checkpoints_steps=10, engine.checkpoint_dir='") +
                              (folder_ / "checkpoints").string() +
                              "', validation.select='SELECT a, b, y FROM held', " +
                              GetParam().second);
  }
  // Runs until there is a checkpoint with an evaluation in it.
  Status RunAWhile() {
    LocalCluster cluster(Machine(8));
    RecordingSink sink;
    std::stop_source enough;
    const std::jthread watch([&](const std::stop_token& stop) {
      int before = -1;
      EXPECT_TRUE(Eventually([&] {
        if (before < 0 && Count(1, "evaluation_done") >= 1) {
          before = Count(1, "checkpoint_written");
        }
        // The next checkpoint may have begun before the evaluation.
        return stop.stop_requested() ||
               (before >= 0 && Count(1, "checkpoint_written") >= before + 2);
      }));
      enough.request_stop();
    });
    return Run(Statement(), cluster, *Open(), sink, enough.get_token());
  }
};

INSTANTIATE_TEST_SUITE_P(
    Strategies, ChangedValidation,
    ::testing::Values(std::pair{"InProcess", "engine.strategy='local'"},
                      std::pair{"Servers", "engine.num_workers=2, engine.num_ps=1"},
                      std::pair{"AllReduce", "engine.num_workers=2, engine.strategy='allreduce'"}),
    [](const auto& named) { return std::string(named.param.first); });

TEST_P(ChangedValidation, EndsTheJobThatGoesOn) {
  ASSERT_EQ(RunAWhile().code(), Code::kCancelled);
  ASSERT_TRUE(source_->Execute("UPDATE held SET y = 1 - y", nullptr, {}).ok());
  LocalCluster cluster(Machine(8));
  RecordingSink sink;
  const Status status = Run(Statement(), cluster, *Open(), sink);
  EXPECT_EQ(status.sqlstate(), "40001") << status.ToString();
  EXPECT_THAT(status.message(), ::testing::HasSubstr("validation rows"));
  EXPECT_FALSE(catalog_->models().Versions("", "m").ok()) << "no model is stored";
}

}  // namespace
}  // namespace sluice::executor
