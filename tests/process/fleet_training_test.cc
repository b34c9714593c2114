#include "tests/process/fleet_training.h"

#include <cstdio>

namespace sluice::elastic {
namespace {

TEST_F(FleetTraining, WorkersAndServersAreProcesses) {
  const Result<TrainOutcome> outcome = Train(Plan(2, 2, 2, false));
  ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
  EXPECT_EQ(outcome->rows_per_epoch + outcome->validation_rows, kRows);
  EXPECT_EQ(outcome->rows_trained, 2 * outcome->rows_per_epoch);
  EXPECT_GT(MetricOf(*outcome, "auc"), 0.88);
  EXPECT_EQ(ChildrenLeft(), 0);
}

TEST_F(FleetTraining, KilledWorkersLoseAndDoubleNoRow) {
  const Result<TrainOutcome> outcome = Train(Plan(2, 1, 3, false), SIGKILL, 5);
  ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
  EXPECT_EQ(pids_.size(), 5U);
  EXPECT_GE(Count("worker_lost"), 5);
  EXPECT_EQ(Count("work_handed_back"), 0);
  EXPECT_EQ(outcome->rows_per_epoch + outcome->validation_rows, kRows);
  EXPECT_EQ(outcome->rows_trained, 3 * outcome->rows_per_epoch);
  EXPECT_EQ(ChildrenLeft(), 0);
}

// Another worker races its lanes after the step has waited for a second, and may finish before the
// hung one is given up after three seconds of silence.
TEST_F(FleetTraining, AHungWorkerDoesNotHoldTheJobUp) {
  const Result<TrainOutcome> outcome = Train(Plan(2, 1, 2, true), SIGSTOP, 1);
  ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
  EXPECT_GE(Count("worker_lost") + Count("task_shared"), 1);
  EXPECT_EQ(outcome->rows_trained, 2 * outcome->rows_per_epoch);
  EXPECT_EQ(ChildrenLeft(), 0);
}

TEST_F(FleetTraining, PreemptedWorkersHandBackTheirWork) {
  const Result<TrainOutcome> outcome = Train(Plan(2, 1, 2, false), SIGTERM, 2);
  ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
  EXPECT_GE(Count("worker_lost"), 2);
  EXPECT_EQ(Count("work_handed_back"), 2)
      << "the exit code is the same for one that was just killed";
  EXPECT_EQ(outcome->rows_trained, 2 * outcome->rows_per_epoch);
}

TEST_F(FleetTraining, SynchronousBitsSurviveKills) {
  const Result<TrainOutcome> one = Train(Plan(1, 1, 2, true));
  ASSERT_TRUE(one.ok()) << one.status().ToString();
  const Result<TrainOutcome> killed = Train(Plan(2, 2, 2, true), SIGKILL, 3);
  ASSERT_TRUE(killed.ok()) << killed.status().ToString();
  EXPECT_GE(Count("worker_lost"), 3);
  EXPECT_EQ(models::SaveWeights(one->weights), models::SaveWeights(killed->weights));
}

// A sleeping worker holds the others up: the master reports how far they went without it.
TEST_F(FleetTraining, P8_NobodyRunsAheadOfASleepingWorker) {
  plan::TrainPlan plan = Plan(3, 1, 3, false);
  plan.mutable_strategy()->set_mode(plan::Strategy::BOUNDED_STALENESS);
  plan.mutable_strategy()->set_staleness(3);
  std::jthread alarm;
  EventCallback events;
  std::string staleness;
  events.on_event = [&](const std::string& kind, const std::string& detail) {
    const Result<int> pid = fleet_->ProcessId("job1-worker-2");
    if (kind == "epoch_done" && !alarm.joinable() && pid.ok()) {
      kill(*pid, SIGSTOP);
      alarm = std::jthread([pid = *pid] {
        std::this_thread::sleep_for(std::chrono::seconds(2));
        kill(pid, SIGCONT);
      });
    }
    if (kind == "staleness") {
      staleness = detail;
    }
  };
  const Result<TrainOutcome> outcome = TrainOnFleet(
      {.plan = plan, .source = *source_, .dataset = dataset_->spec(), .events = events}, *fleet_,
      "job1");
  ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
  int ahead = -1;
  ASSERT_EQ(std::sscanf(staleness.c_str(), "a worker was at most %d batches", &ahead), 1);
  EXPECT_LE(ahead, 3);
  EXPECT_EQ(outcome->rows_trained, 3 * outcome->rows_per_epoch);
  EXPECT_GT(MetricOf(*outcome, "auc"), 0.88);
  EXPECT_EQ(ChildrenLeft(), 0);
}

TEST_F(FleetTraining, P15_KilledServersCostNothing) {
  const Result<TrainOutcome> undisturbed = Train(Plan(1, 1, 4, true));
  ASSERT_TRUE(undisturbed.ok()) << undisturbed.status().ToString();
  plan::TrainPlan plan = Plan(2, 2, 4, true);
  plan.mutable_strategy()->set_replicas(1);
  const Result<TrainOutcome> killed = TrainWithLostServers(plan, SIGKILL, 3);
  ASSERT_TRUE(killed.ok()) << killed.status().ToString();
  EXPECT_GE(Count("server_lost"), 1);
  EXPECT_EQ(killed->rows_trained, 4 * killed->rows_per_epoch);
  EXPECT_EQ(models::SaveWeights(killed->weights), models::SaveWeights(undisturbed->weights));
  EXPECT_EQ(ChildrenLeft(), 0);
}

TEST_F(FleetTraining, P7_AsynchronousTrainingOutlivesKilledServers) {
  plan::TrainPlan plan = Plan(2, 3, 4, false);
  plan.mutable_strategy()->set_replicas(1);
  const Result<TrainOutcome> killed = TrainWithLostServers(plan, SIGKILL, 3);
  ASSERT_TRUE(killed.ok()) << killed.status().ToString();
  EXPECT_GE(Count("server_lost"), 1);
  EXPECT_EQ(killed->rows_trained, 4 * killed->rows_per_epoch);
  EXPECT_EQ(killed->rows_per_epoch + killed->validation_rows, kRows);
  EXPECT_GT(MetricOf(*killed, "auc"), 0.88);
}

TEST_F(FleetTraining, AHungServerIsReplaced) {
  const Result<TrainOutcome> undisturbed = Train(Plan(1, 1, 3, true));
  ASSERT_TRUE(undisturbed.ok()) << undisturbed.status().ToString();
  plan::TrainPlan plan = Plan(2, 2, 3, true);
  plan.mutable_strategy()->set_replicas(1);
  const Result<TrainOutcome> hung = TrainWithLostServers(plan, SIGSTOP, 1);
  ASSERT_TRUE(hung.ok()) << hung.status().ToString();
  EXPECT_EQ(Count("server_lost"), 1);
  EXPECT_EQ(models::SaveWeights(hung->weights), models::SaveWeights(undisturbed->weights));
  EXPECT_EQ(ChildrenLeft(), 0);
}

// Partitions move while training continues: the model is the one of servers that stay. Batches are
// tiny, so that most of the workers' time is the exchange and a second server is asked for.
TEST_F(FleetTraining, P20_ServersFollowTheWorkersWhileTrainingGoesOn) {
  plan::TrainPlan plan = Plan(2, 1, 200, true);
  plan.set_batch_size(32);
  plan.mutable_strategy()->set_replicas(1);
  plan.mutable_strategy()->set_max_parameter_servers(2);
  std::stop_source finish;
  EventCallback events;
  events.on_event = [&](const std::string& kind, const std::string& detail) {
    events_.push_back(kind + " " + detail);
    if (kind == "partitions_moved") {
      finish.request_stop();
    }
  };
  const Result<TrainOutcome> moved = TrainOnFleet({.plan = plan,
                                                   .source = *source_,
                                                   .dataset = dataset_->spec(),
                                                   .events = events,
                                                   .finish = finish.get_token()},
                                                  *fleet_, "job1");
  ASSERT_TRUE(moved.ok()) << moved.status().ToString();
  EXPECT_GE(Count("servers_scaled"), 1);
  EXPECT_GE(Count("partitions_moved"), 1);
  EXPECT_EQ(moved->rows_trained, moved->epochs * moved->rows_per_epoch);
  EXPECT_EQ(ChildrenLeft(), 0);
  plan.set_epochs(moved->epochs);
  EXPECT_EQ(models::SaveWeights(moved->weights), BitsInProcess(plan));
}

// SIGTERM, as a drain sends it: the process goes on until another has its partitions.
TEST_F(FleetTraining, TheOnlyServerIsToldToEndAndCostsNothing) {
  const Result<TrainOutcome> told = TrainWithLostServers(Plan(2, 1, 4, true), SIGTERM, 1);
  ASSERT_TRUE(told.ok()) << told.status().ToString();
  EXPECT_EQ(Count("server_leaves"), 1);
  EXPECT_EQ(Count("training_begins_again"), 0);
  EXPECT_EQ(told->rows_trained, 4 * told->rows_per_epoch);
  EXPECT_EQ(models::SaveWeights(told->weights), BitsInProcess(Plan(1, 1, 4, true)));
  EXPECT_EQ(ChildrenLeft(), 0);
}

TEST_F(FleetTraining, WithoutItsOnlyServerATrainingBeginsAgain) {
  const Result<TrainOutcome> killed = TrainWithLostServers(Plan(2, 1, 4, true), SIGKILL, 1);
  ASSERT_TRUE(killed.ok()) << killed.status().ToString();
  EXPECT_EQ(Count("training_begins_again"), 1);
  EXPECT_EQ(killed->rows_trained, 4 * killed->rows_per_epoch);
  EXPECT_EQ(models::SaveWeights(killed->weights), BitsInProcess(Plan(1, 1, 4, true)));
  EXPECT_EQ(ChildrenLeft(), 0);
}

TEST_F(FleetTraining, AServerThatIsKilledAgainIsAClearErrorAndLeavesNothing) {
  EventCallback events;
  events.on_event = [&](const std::string& kind, const std::string& detail) {
    events_.push_back(kind + " " + detail);
    // The one of the training that has begun again has another name.
    for (const char* server : {"job1-ps-0", "job1-ps-1"}) {
      const Result<int> pid = fleet_->ProcessId(server);
      if (kind == "worker_started" && pid.ok()) {
        kill(*pid, SIGKILL);
      }
    }
  };
  const Result<TrainOutcome> outcome = TrainOnFleet({.plan = Plan(2, 1, 1'000, false),
                                                     .source = *source_,
                                                     .dataset = dataset_->spec(),
                                                     .events = events},
                                                    *fleet_, "job1");
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(Count("training_begins_again"), 1);
  EXPECT_NE(outcome.status().message().find("job1-ps-1"), std::string::npos)
      << outcome.status().ToString();
  EXPECT_EQ(ChildrenLeft(), 0);
}

}  // namespace
}  // namespace sluice::elastic
