#include <gtest/gtest.h>

#include "elastic/fleet/autoscaler.h"
#include "tests/elastic/fleet/sharing_cluster.h"

// What moves no worker, or none twice: the autoscaler is not in a hurry.
namespace sluice::elastic {
namespace {

TEST(Autoscaler, A10_AMeasurementThatVariesMovesNobody) {
  SharingCluster cluster(1, 32);
  cluster.Job(1, 30);
  cluster.state.jobs[0].throughput = {{1, 100}, {8, 800}};
  cluster.Run(0, 9);
  for (const double ninth : {815, 812, 818, 811}) {
    cluster.state.jobs[0].throughput = {{1, 100}, {8, 800}, {9, ninth}};
    cluster.Converge();
    EXPECT_EQ(cluster.Workers(0), 9);
  }
  cluster.state.jobs[0].throughput = {{1, 100}, {8, 800}, {9, 805}};
  const ScalingDecision decision = cluster.Decide();
  EXPECT_EQ(decision.targets[0].workers, 8U);
  EXPECT_EQ(decision.targets[0].reason,
            "one more would add less than 20 % of the first one's rows");
}

TEST(Autoscaler, OfJobsOfTheSameSecondTheOneThatRunsStays) {
  SharingCluster cluster(1, 4);
  cluster.Job(4, 8);
  cluster.Job(1, 3);
  cluster.Run(1, 3);
  cluster.Converge();
  EXPECT_EQ(cluster.Workers(1), 3);
  EXPECT_EQ(cluster.Workers(0), 0);
}

TEST(Autoscaler, OfJobsOfTheSameSecondTheOneWhoseWorkersAreBeingStartedKeepsThem) {
  SharingCluster cluster(1, 6);
  cluster.options.hysteresis_seconds = 0;
  const int other = cluster.Job(4, 4), first = cluster.Job(4, 4);
  cluster.state.jobs[static_cast<size_t>(first)].granted = 4;
  cluster.Run(first, 3);  // the fourth one has no node yet
  const ScalingDecision decision = cluster.Decide();
  EXPECT_EQ(decision.targets[static_cast<size_t>(first)].workers, 4U);
  EXPECT_EQ(decision.targets[static_cast<size_t>(other)].workers, 0U);
  EXPECT_TRUE(decision.victims.empty());
}

TEST(Autoscaler, A11_RoomThatComesAndGoesIsNotChased) {
  SharingCluster cluster;
  cluster.Job(1, 10);
  cluster.Run(ClusterProcess::kNone, 5, 0, false);
  cluster.Converge();
  EXPECT_EQ(cluster.Workers(0), 5);
  int changes = 0;
  const auto comes_and_goes = [](const ClusterProcess& process) {
    return process.name == "comes and goes";
  };
  for (int round = 0; round < 40; ++round) {  // four foreground processes for 3 s, then 3 s without
    if (round % 2 == 0) {
      cluster.Run(ClusterProcess::kNone, 4, ClusterProcess::kNone, false);
      for (size_t i = cluster.state.processes.size() - 4; i < cluster.state.processes.size(); ++i) {
        cluster.state.processes[i].name = "comes and goes";
      }
      changes += cluster.Decide().victims.empty() ? 0 : 1;
      cluster.Settle();
      cluster.Decide();
      for (const ClusterProcess& process : cluster.state.processes) {
        EXPECT_NE(process.node, ClusterProcess::kNone);  // never starved
      }
    } else {
      std::erase_if(cluster.state.processes, comes_and_goes);
    }
    for (int second = 0; second < 3; ++second) {
      cluster.Pass(1);
      changes += cluster.Decide().starts.empty() ? 0 : 1;
    }
  }
  EXPECT_LE(changes, 7);  // three growths, until the job has learnt to wait for longer than 3 s
}

TEST(Autoscaler, RoomThatStaysIsUsedSoon) {
  SharingCluster cluster;
  cluster.Job(1, 10);
  cluster.Run(ClusterProcess::kNone, 5, 0, false);
  cluster.Converge();
  cluster.Pass(100);
  std::erase_if(cluster.state.processes,
                [](const ClusterProcess& process) { return process.job == ClusterProcess::kNone; });
  EXPECT_TRUE(cluster.Decide().starts.empty());
  cluster.Pass(0.5);
  EXPECT_EQ(cluster.Decide().starts.size(), 5U);
}

// The pods of a grant appear one by one.
TEST(Autoscaler, A11_AGrantThatStartsSlowlyStays) {
  SharingCluster cluster(1, 8);
  const int a = cluster.Job(1, 8), b = cluster.Job(1, 8);
  cluster.Run(a, 4);
  cluster.Run(b, 2);
  cluster.state.jobs[1].granted = 4;
  ScalingDecision decision =
      Autoscale(cluster.state, cluster.options, cluster.history, cluster.now);
  EXPECT_EQ(decision.targets[0].workers, 4U);
  EXPECT_EQ(decision.targets[1].workers, 4U);
  EXPECT_EQ(decision.starts.size(), 2U);
  EXPECT_TRUE(decision.victims.empty());
  // But what has no place any more is taken back.
  cluster.state.nodes[0].capacity.cpu = 6;
  decision = Autoscale(cluster.state, cluster.options, cluster.history, cluster.now);
  EXPECT_EQ(decision.targets[0].workers + decision.targets[1].workers, 6U);
  EXPECT_TRUE(decision.starts.empty());
}

TEST(Autoscaler, A12_WhatEndsIsNotShrunkForTwice) {
  SharingCluster cluster;
  cluster.Job(1, 10);
  cluster.Run(0, 10);
  cluster.Run(ClusterProcess::kNone, 3, ClusterProcess::kNone, false);
  EXPECT_EQ(cluster.Decide().victims.size(), 3U);
  for (ClusterProcess& process : cluster.state.processes) {
    process.cost = process.terminating ? 100 : 0;  // would be victims if not ending
  }
  for (int i = 0; i < 5; ++i) {
    const ScalingDecision decision = cluster.Decide();
    EXPECT_TRUE(decision.victims.empty());
    EXPECT_TRUE(decision.puts.empty());  // nothing is placed where something is still ending
    EXPECT_EQ(decision.targets[0].workers, 7U);
  }
  cluster.Settle();
  EXPECT_EQ(cluster.Decide().puts.size(), 3U);
}

TEST(Autoscaler, A12_WhatEndsIsPlannedForAndNotUsedBeforeItIsGone) {
  SharingCluster cluster;
  cluster.options.hysteresis_seconds = 0;
  cluster.Job(1, 10);
  cluster.Run(0, 6);
  cluster.Run(ClusterProcess::kNone, 4, 0, false);
  cluster.state.processes.back().terminating = true;
  const ScalingDecision decision = cluster.Decide();
  EXPECT_EQ(decision.targets[0].workers, 7U);
  EXPECT_TRUE(decision.starts.empty());
  cluster.Settle();
  EXPECT_EQ(cluster.Decide().starts.size(), 1U);
}

}  // namespace
}  // namespace sluice::elastic
