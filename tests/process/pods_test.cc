#include <gmock/gmock.h>

#include <algorithm>
#include <csignal>

#include "tests/process/pods_fixture.h"

// Pods die, and jobs continue.
namespace sluice::executor {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(Pods, AStatementTrainsOnPods) {
  RecordingSink sink;
  const Status status = Train("m", kSynchronous, sink);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(kubelet_->Started("master").size(), 1U);
  EXPECT_EQ(kubelet_->Started("worker").size(), 2U);
  EXPECT_EQ(kubelet_->Started("ps").size(), 2U);
  EXPECT_EQ(sink.rows.size(), 1U);
  EXPECT_EQ(catalog_->jobs().Find(1)->state, catalog::JobState::kSucceeded);
  EXPECT_EQ(catalog_->jobs().Find(1)->rows_trained, 12 * kRowsTrained);
  EXPECT_THAT(catalog_->jobs().Records(1, "").value(), IsEmpty());
  EXPECT_EQ(Count(1, "pod_started"), 1 + 2 + 2) << ::testing::PrintToString(Events(1));
  EXPECT_TRUE(Eventually([&] { return Count(1, "pod_ended") == 2 + 2; }))
      << ::testing::PrintToString(Events(1));  // after the job, which ends with its model
  EXPECT_THAT(PodsShown(1), ::testing::Contains(::testing::MatchesRegex(
                                "job1-.*-worker-1 on node-[12]: exit code [0-9]+.*")));
  EXPECT_THAT(PodsShown(1), ::testing::Contains(::testing::MatchesRegex(
                                "job1-.*-master-1 on node-[12]: ended with the job")));
  ExpectNothingLeft();
  EXPECT_TRUE(Eventually([&] { return Reasons().contains("Complete"); }));
  EXPECT_EQ(Reasons()["PodStarted"], 4) << "its own pod a master does not see start";
  EXPECT_EQ(Reasons()["Started"], 1);
  const k8s::TrainingJobStatus told = StatusOf(OnlyTrainingJob());
  EXPECT_TRUE(k8s::Holds(told, k8s::kConditionComplete));
  EXPECT_FALSE(k8s::Holds(told, k8s::kConditionRunning));
  EXPECT_EQ(told.job, 1);
  EXPECT_EQ(told.model, "m");
  EXPECT_EQ(told.percent, 100);
  EXPECT_EQ(told.most_workers, 2U);
  EXPECT_EQ(told.master_number, 1U);
  // The same bits as with processes on this machine.
  ASSERT_TRUE(TrainHere("u", kSynchronous).ok());
  EXPECT_EQ(Sha("m"), Sha("u"));
}

TEST_F(Pods, K20_KilledMastersAreSucceededAndNobodyElseIsTouched) {
  // Long enough for both kills to come in the middle.
  const std::string attributes =
      "train.epoch=30, engine.seed=5, engine.num_workers=2, engine.max_workers=2, engine.num_ps=2, "
      "engine.sync=true";
  RecordingSink quiet;
  ASSERT_TRUE(Train("u", attributes, quiet).ok());
  RecordingSink sink;
  Status status;
  int killed = 0;
  {
    const std::jthread killer([&](const std::stop_token& stop) {
      for (int epoch = 1; epoch <= 2; ++epoch) {
        EXPECT_TRUE(
            Eventually([&] { return stop.stop_requested() || Count(2, "epoch_done") >= epoch; }));
        const std::vector<std::string> masters = kubelet_->Running("master");
        if (stop.stop_requested() || masters.empty()) {
          return;
        }
        // From here on the rows differ: the job's snapshot does not show that.
        Ask(*admin_,
            "WITH u AS (UPDATE points SET a = -a, y = 1 - y WHERE i % 2 = 0 RETURNING 1)"
            " SELECT count(*) FROM u");
        killed += kubelet_->Kill(masters.back()) ? 1 : 0;
        // Its Event is written a little later.
        EXPECT_TRUE(Eventually([&] {
          return stop.stop_requested() ||
                 (Count(2, "master_took_over") >= killed && Reasons()["TookOver"] >= killed);
        }));
      }
    });
    status = Train("m", attributes, sink);
  }
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(killed, 2);
  EXPECT_EQ(kubelet_->Started("master").size(), 1U + 3U);
  EXPECT_EQ(Reasons()["TookOver"], 2);
  EXPECT_EQ(Count(2, "master_took_over"), 2);
  EXPECT_EQ(Count(2, "worker_lost"), 0) << ::testing::PrintToString(Events(2));
  EXPECT_EQ(Count(2, "server_lost"), 0) << ::testing::PrintToString(Events(2));
  EXPECT_EQ(Count(2, "snapshot_lost"), 0);
  EXPECT_EQ(kubelet_->Started("worker").size(), 2U + 2U);
  EXPECT_EQ(kubelet_->Started("ps").size(), 2U + 2U);
  EXPECT_EQ(catalog_->jobs().Find(2)->rows_trained, 30 * kRowsTrained);
  EXPECT_EQ(catalog_->models().Versions("", "m")->size(), 1U);
  EXPECT_TRUE(catalog_->jobs().Journal(2)->empty());
  ExpectNothingLeft();
  EXPECT_EQ(Sha("m"), Sha("u"));
}

// As on a disconnected node: its pod is reported as running for minutes.
TEST_F(Pods, AMasterThatSaysNothingIsSucceeded) {
  RecordingSink sink;
  Status status;
  std::string silent;
  {
    const std::jthread node([&](const std::stop_token& stop) {
      EXPECT_TRUE(Eventually([&] { return stop.stop_requested() || Count(1, "epoch_done") >= 1; }));
      const std::vector<std::string> masters = kubelet_->Running("master");
      if (!masters.empty() && !stop.stop_requested()) {
        silent = masters.back();
        kill(kubelet_->ProcessId(silent).value(), SIGSTOP);
      }
      EXPECT_TRUE(
          Eventually([&] { return stop.stop_requested() || Count(1, "master_took_over") >= 1; }));
      if (!silent.empty()) {
        kill(kubelet_->ProcessId(silent).value(), SIGCONT);
      }
    });
    status = Train("m",
                   "train.epoch=6, engine.seed=5, engine.num_workers=2, "
                   "engine.max_workers=2, engine.num_ps=2, engine.sync=true",
                   sink);
  }
  ASSERT_TRUE(status.ok()) << status.ToString();
  ASSERT_NE(silent, "");
  EXPECT_EQ(kubelet_->Started("master").size(), 2U);
  EXPECT_EQ(Count(1, "master_took_over"), 1);
  EXPECT_EQ(catalog_->jobs().Find(1)->rows_trained, 6 * kRowsTrained);
  ExpectNothingLeft();
}

// On a node without power, whose kubelet starts it once more when it comes back.
TEST_F(Pods, AMasterThatRunsAgainLeavesTheJobToItsSuccessor) {
  RecordingSink sink;
  Status status;
  std::string earlier;
  {
    const std::jthread node([&](const std::stop_token& stop) {
      EXPECT_TRUE(Eventually([&] { return stop.stop_requested() || Count(1, "epoch_done") >= 1; }));
      const std::vector<std::string> masters = kubelet_->Running("master");
      if (stop.stop_requested() || masters.empty()) {
        return;
      }
      earlier = masters.back();
      kill(kubelet_->ProcessId(earlier).value(), SIGSTOP);
      EXPECT_TRUE(
          Eventually([&] { return stop.stop_requested() || Count(1, "master_took_over") >= 1; }));
      EXPECT_TRUE(kubelet_->StartAgain(earlier));
    });
    status = Train("m",
                   "train.epoch=30, engine.seed=5, engine.num_workers=2, engine.max_workers=2, "
                   "engine.num_ps=2, engine.sync=true",
                   sink);
  }
  ASSERT_TRUE(status.ok()) << status.ToString();
  ASSERT_NE(earlier, "");
  EXPECT_THAT(kubelet_->LogOf(earlier), HasSubstr("there is a later master"));
  EXPECT_EQ(kubelet_->Started("master").size(), 3U);
  EXPECT_EQ(Count(1, "master_took_over"), 1);
  int masters = 0;
  for (const std::string& event : Events(1)) {
    masters += event.starts_with("pod_started") && event.find("-master-") != std::string::npos;
  }
  EXPECT_EQ(masters, 2) << "it has touched the job again" << ::testing::PrintToString(Events(1));
  EXPECT_EQ(catalog_->jobs().Find(1)->rows_trained, 30 * kRowsTrained);
  ExpectNothingLeft();
}

// Its kubelet is busy, so that it is still at work when the next one begins.
TEST_F(Pods, AMasterThatIsSucceededWhileItWorksDoesNotEndTheJob) {
  RecordingSink sink;
  Status status;
  std::string earlier;
  {
    const std::jthread drain([&](const std::stop_token& stop) {
      EXPECT_TRUE(Eventually([&] { return stop.stop_requested() || Count(1, "epoch_done") >= 1; }));
      const std::vector<std::string> masters = kubelet_->Running("master");
      if (stop.stop_requested() || masters.empty()) {
        return;
      }
      earlier = masters.back();
      kubelet_->EndLate(std::chrono::seconds(20));
      kubelet_->Delete(earlier, 30);
      EXPECT_TRUE(
          Eventually([&] { return stop.stop_requested() || Count(1, "master_took_over") >= 1; }));
      kubelet_->EndLate(std::chrono::seconds(0));
    });
    status = Train("m",
                   "train.epoch=40, engine.seed=5, engine.num_workers=2, engine.max_workers=2, "
                   "engine.num_ps=2, engine.sync=true",
                   sink);
  }
  ASSERT_TRUE(status.ok()) << status.ToString();
  ASSERT_NE(earlier, "");
  EXPECT_THAT(kubelet_->LogOf(earlier), HasSubstr("there is a later master"));
  EXPECT_EQ(kubelet_->Started("master").size(), 2U);
  EXPECT_EQ(Count(1, "master_took_over"), 1);
  EXPECT_EQ(Count(1, "worker_lost"), 0) << ::testing::PrintToString(Events(1));
  EXPECT_EQ(catalog_->jobs().Find(1)->state, catalog::JobState::kSucceeded);
  EXPECT_EQ(catalog_->jobs().Find(1)->rows_trained, 40 * kRowsTrained);
  ExpectNothingLeft();
}

// As a drain does: SIGTERM.
TEST_F(Pods, AnEvictedMasterLeavesEverybodyRunning) {
  RecordingSink sink;
  Status status;
  std::string evicted;
  {
    const std::jthread drain([&](const std::stop_token& stop) {
      EXPECT_TRUE(Eventually([&] { return stop.stop_requested() || Count(1, "epoch_done") >= 1; }));
      const std::vector<std::string> masters = kubelet_->Running("master");
      if (stop.stop_requested() || masters.empty()) {
        return;
      }
      evicted = masters.back();
      kubelet_->Delete(evicted, 30);
    });
    status = Train("m", kSynchronous, sink);
  }
  ASSERT_TRUE(status.ok()) << status.ToString();
  ASSERT_NE(evicted, "");
  EXPECT_THAT(kubelet_->LogOf(evicted), HasSubstr("evicted"));
  EXPECT_EQ(kubelet_->ExitCodeOf(evicted), 0) << "an ordinary end";
  EXPECT_EQ(kubelet_->Started("master").size(), 2U);
  EXPECT_EQ(Count(1, "master_took_over"), 1);
  EXPECT_EQ(Count(1, "worker_lost"), 0) << ::testing::PrintToString(Events(1));
  EXPECT_EQ(catalog_->jobs().Find(1)->state, catalog::JobState::kSucceeded);
  EXPECT_EQ(catalog_->jobs().Find(1)->rows_trained, 12 * kRowsTrained);
  ExpectNothingLeft();
}

// Of the only node that has any of them.
TEST_F(Pods, AMasterAndAllWorkersAreEvictedAtOnce) {
  StartCluster({SLUICE_BINARY, 1});
  RecordingSink quiet;
  ASSERT_TRUE(Train("u", kSynchronous, quiet).ok());
  RecordingSink sink;
  Status status;
  std::string evicted;
  {
    const std::jthread drain([&](const std::stop_token& stop) {
      EXPECT_TRUE(Eventually([&] { return stop.stop_requested() || Count(2, "epoch_done") >= 1; }));
      const std::vector<std::string> masters = kubelet_->Running("master");
      if (stop.stop_requested() || masters.empty()) {
        return;
      }
      for (const std::string& worker : kubelet_->Running("worker")) {
        kubelet_->Delete(worker, 30);
      }
      evicted = masters.back();
      kubelet_->Delete(evicted, 30);
    });
    status = Train("m", kSynchronous, sink);
  }
  ASSERT_TRUE(status.ok()) << status.ToString();
  ASSERT_NE(evicted, "");
  EXPECT_EQ(Count(2, "master_took_over"), 1) << ::testing::PrintToString(Events(2));
  EXPECT_EQ(Count(2, "snapshot_lost"), 0) << ::testing::PrintToString(Events(2));
  EXPECT_EQ(catalog_->jobs().Find(2)->rows_trained, 12 * kRowsTrained);
  EXPECT_EQ(Sha("m"), Sha("u"));
  ExpectNothingLeft();
}

TEST_F(Pods, TheGatewayIsReplacedAndThenTheMaster) {
  RecordingSink sink;
  std::stop_source gateway_ends;
  Status status;
  {
    const std::jthread gateway([&](const std::stop_token& stop) {
      EXPECT_TRUE(Eventually([&] { return stop.stop_requested() || Count(1, "epoch_done") >= 1; }));
      gateway_ends.request_stop();
    });
    status = Train("m", "train.epoch=30, engine.seed=5, engine.num_workers=2, engine.num_ps=1",
                   sink, gateway_ends.get_token(), true);
  }
  EXPECT_THAT(status.ToString(), HasSubstr("job 1 goes on: WAIT JOB 1"));
  cluster_.reset();
  StartGateway();
  const std::vector<std::string> masters = kubelet_->Running("master");
  ASSERT_EQ(masters.size(), 1U);
  kubelet_->Kill(masters[0]);
  EXPECT_TRUE(
      Eventually([&] { return catalog_->jobs().Find(1)->state != catalog::JobState::kRunning; }));
  EXPECT_EQ(catalog_->jobs().Find(1)->state, catalog::JobState::kSucceeded);
  EXPECT_EQ(kubelet_->Started("master").size(), 2U);
  EXPECT_EQ(catalog_->jobs().Find(1)->rows_trained, 30 * kRowsTrained);
  ExpectNothingLeft();
}

TEST_F(Pods, WorkersAndServersThatGoAreReplaced) {
  RecordingSink sink;
  Status status;
  std::string leaving;
  {
    const std::jthread node([&](const std::stop_token& stop) {
      const auto after = [&](int epochs) {
        return Eventually(
                   [&] { return stop.stop_requested() || Count(1, "epoch_done") >= epochs; }) &&
               !stop.stop_requested();
      };
      if (after(1)) {
        leaving = kubelet_->Running("worker").at(0);
        kubelet_->Delete(leaving, 30);  // leaves first
      }
      if (after(2)) {
        const std::vector<std::string> workers = kubelet_->Running("worker");
        kubelet_->Kill(*std::find_if(workers.begin(), workers.end(),
                                     [&](const std::string& name) { return name != leaving; }));
        kubelet_->Kill(kubelet_->Running("ps").at(0));
      }
    });
    status = Train("m",
                   "train.epoch=12, engine.seed=5, engine.num_workers=2, engine.max_workers=2, "
                   "engine.num_ps=2, engine.replicas=1, engine.sync=true",
                   sink);
  }
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(kubelet_->ExitCodeOf(leaving), 0) << "an ordinary end";
  EXPECT_GE(kubelet_->Started("worker").size(), 4U);
  EXPECT_GE(kubelet_->Started("ps").size(), 3U);
  EXPECT_EQ(kubelet_->Started("master").size(), 1U);
  EXPECT_EQ(catalog_->jobs().Find(1)->rows_trained, 12 * kRowsTrained);
  ExpectNothingLeft();
}

TEST_F(Pods, CancelEndsAllOfThem) {
  RecordingSink sink;
  std::string metrics;
  Status status;
  {
    const std::jthread user([&](const std::stop_token& stop) {
      EXPECT_TRUE(Eventually([&] { return stop.stop_requested() || Count(1, "epoch_done") >= 1; }));
      EXPECT_TRUE(Eventually([&] {
        metrics = MetricsOf(kubelet_->Running("master").at(0));
        return stop.stop_requested() ||
               metrics.find("sluice_pods_started_total{role=\"worker\"} 2\n") != std::string::npos;
      }));
      EXPECT_TRUE(catalog_->jobs().RequestCancel(1).ok());
    });
    status = Train("m", "train.epoch=2000, engine.num_workers=2, engine.num_ps=1", sink);
  }
  EXPECT_EQ(status.code(), Code::kCancelled) << status.ToString();
  EXPECT_EQ(catalog_->jobs().Find(1)->state, catalog::JobState::kCancelled);
  EXPECT_THAT(metrics, HasSubstr("sluice_kubernetes_calls_total{verb=\"create\",outcome=\"ok\"} "));
  EXPECT_THAT(metrics, HasSubstr("\nsluice_rows_total "));
  ExpectNothingLeft();
}

// The second master goes on with the training that was under way, and repeats none that was over.
TEST_F(Pods, ASearchOutlivesItsMaster) {
  RecordingSink sink;
  Status status;
  bool killed = false;
  {
    const std::jthread killer([&](const std::stop_token& stop) {
      // In the second training, when its workers keep the job's snapshot.
      EXPECT_TRUE(Eventually([&] { return stop.stop_requested() || Count(1, "epoch_done") >= 5; }));
      const std::vector<std::string> masters = kubelet_->Running("master");
      killed = !masters.empty() && kubelet_->Kill(masters.back());
    });
    status = Train("m",
                   std::string("tune.model.dropout=[0, 0.3, 0.6], tune.trials=3, "
                               "tune.search=random, split.fraction=0.1, ") +
                       kSynchronous,
                   sink);
  }
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_TRUE(killed);
  EXPECT_EQ(Count(1, "candidate"), 3) << ::testing::PrintToString(Events(1));
  EXPECT_EQ(Count(1, "worker_lost"), 0) << ::testing::PrintToString(Events(1));
  plan::TrainPlan plan;
  ASSERT_TRUE(plan.ParseFromString(catalog_->models().Find("", "m", {}).value().plan));
  ASSERT_EQ(plan.contest().candidates_size(), 3);
  for (const plan::Candidate& candidate : plan.contest().candidates()) {
    EXPECT_TRUE(candidate.has_value()) << candidate.name();
  }
  ExpectNothingLeft();
}

// No worker had read a row yet, so there is no snapshot that another could keep.
TEST_F(Pods, AMasterThatDiesFirstIsSucceeded) {
  RecordingSink sink;
  Status status;
  {
    const std::jthread killer([&](const std::stop_token& stop) {
      EXPECT_TRUE(
          Eventually([&] { return stop.stop_requested() || Count(1, "master_started") >= 1; }));
      const std::vector<std::string> masters = kubelet_->Running("master");
      if (!masters.empty()) {
        kubelet_->Kill(masters.back());
      }
    });
    status = Train("m", kSynchronous, sink);
  }
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(catalog_->jobs().Find(1)->rows_trained, 12 * kRowsTrained);
  ExpectNothingLeft();
}

}  // namespace
}  // namespace sluice::executor
