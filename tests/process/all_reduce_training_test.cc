#include <gmock/gmock.h>

#include <cstdio>

#include "tests/process/fleet_training.h"

// All-reduce with real processes.
namespace sluice::elastic {
namespace {

// It takes a second on an idle machine.
constexpr double kGenerousSeconds = 5;

// One of four dies, the others continue without it, its successor joins: the batch stays the same.
TEST_F(FleetTraining, R4_WorldsOfFourThreeAndFourTrainTheSameBatches) {
  const plan::TrainPlan plan = AllReducePlan(4, 30);
  const std::string expected = BitsInProcess(plan);
  std::vector<std::string> worlds;
  EventCallback events;
  events.on_event = [&](const std::string& kind, const std::string& detail) {
    int id = 0, workers = 0;
    if (kind == "world_formed" &&
        std::sscanf(detail.c_str(), "%d: %d workers", &id, &workers) == 2) {
      worlds.push_back(std::to_string(workers));
    }
    if (kind == "epoch_done" && detail.starts_with("epoch 5:")) {
      kill(fleet_->ProcessId("job1-worker-2").value(), SIGKILL);
    }
  };
  const Result<TrainOutcome> outcome = TrainOnFleet(
      {.plan = plan, .source = *source_, .dataset = dataset_->spec(), .events = events}, *fleet_,
      "job1");
  ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
  EXPECT_THAT(worlds, ::testing::ElementsAre("4", "3", "4"));
  EXPECT_EQ(models::SaveWeights(outcome->weights), expected);
  EXPECT_EQ(outcome->rows_trained, 30 * outcome->rows_per_epoch);
}

// Five shards in rounds of four lanes: in the second round only one of three workers has rows.
TEST_F(FleetTraining, R5_WorkersWithoutShardsDoNotHoldTheOthersUp) {
  Cut(13'000);
  ASSERT_EQ(dataset_->spec().shards_size(), 5);
  const plan::TrainPlan plan = AllReducePlan(3, 4);
  const std::string expected = BitsInProcess(plan);
  const Result<TrainOutcome> outcome = Train(plan);
  ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
  EXPECT_EQ(Count("worker_lost"), 0);
  EXPECT_EQ(models::SaveWeights(outcome->weights), expected);
  EXPECT_EQ(outcome->rows_trained, 4 * outcome->rows_per_epoch);
  EXPECT_EQ(ChildrenLeft(), 0);
}

TEST_F(FleetTraining, R4_AllReduceHasTheBitsOfServersWhateverTheNumberOfWorkers) {
  const std::string expected = BitsInProcess(AllReducePlan(1, 2));
  const Result<TrainOutcome> servers = Train(Plan(2, 2, 2, true));
  ASSERT_TRUE(servers.ok()) << servers.status().ToString();
  EXPECT_EQ(models::SaveWeights(servers->weights), expected);
  for (uint32_t workers : {1, 2, 3, 8}) {
    const Result<TrainOutcome> outcome = Train(AllReducePlan(workers, 2));
    ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
    EXPECT_EQ(models::SaveWeights(outcome->weights), expected) << workers << " workers";
    EXPECT_EQ(outcome->rows_trained, servers->rows_trained);
    EXPECT_EQ(ChildrenLeft(), 0);
  }
}

TEST_F(FleetTraining, R7_AllReduceBitsSurviveKillsAtRandomMoments) {
  const plan::TrainPlan plan = AllReducePlan(3, 20);
  const std::string expected = BitsInProcess(plan);
  for (uint64_t seed : {1, 2}) {
    events_.clear();
    started_.clear();
    sent_ = 0;
    const std::jthread disturb = Disturb({SIGKILL, SIGTERM, SIGKILL, SIGKILL, SIGTERM}, seed);
    const Result<TrainOutcome> outcome = Train(plan);
    ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
    EXPECT_GE(sent_, 2) << "the job was over before it was disturbed";
    EXPECT_EQ(models::SaveWeights(outcome->weights), expected) << "seed " << seed;
    EXPECT_EQ(outcome->rows_trained, 20 * outcome->rows_per_epoch);
    EXPECT_LT(longest_recovery_, kGenerousSeconds);
    EXPECT_EQ(ChildrenLeft(), 0);
  }
  RecordProperty("longest_recovery_seconds", std::to_string(longest_recovery_));
}

TEST_F(FleetTraining, R7_AllReduceLeavesAHungWorkerBehind) {
  const plan::TrainPlan plan = AllReducePlan(3, 20);
  const std::string expected = BitsInProcess(plan);
  const std::jthread disturb = Disturb({SIGSTOP}, 3);
  const Result<TrainOutcome> outcome = Train(plan);
  ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
  EXPECT_EQ(sent_, 1);
  EXPECT_GE(Count("world_formed"), 2);
  EXPECT_LT(longest_recovery_, kGenerousSeconds);
  RecordProperty("recovery_seconds", std::to_string(longest_recovery_));
  EXPECT_EQ(models::SaveWeights(outcome->weights), expected);
  EXPECT_EQ(ChildrenLeft(), 0);
}

TEST_F(FleetTraining, R6_AllReduceWaitsForTheLeastNumberOfWorkers) {
  plan::TrainPlan plan = AllReducePlan(2, 20);
  plan.mutable_strategy()->set_min_workers(2);
  const std::string expected = BitsInProcess(plan);
  const std::jthread disturb = Disturb({SIGKILL, SIGKILL}, 4);
  const Result<TrainOutcome> outcome = Train(plan);
  ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
  EXPECT_GE(Count("worker_lost"), 1);
  for (const std::string& event : events_) {
    EXPECT_EQ(event.find("1 workers"), std::string::npos) << event;
  }
  EXPECT_EQ(models::SaveWeights(outcome->weights), expected);
}

}  // namespace
}  // namespace sluice::elastic
