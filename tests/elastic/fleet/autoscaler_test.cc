#include "elastic/fleet/autoscaler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <utility>
#include <vector>

#include "elastic/fleet/fragmentation.h"
#include "tests/elastic/fleet/sharing_cluster.h"

namespace sluice::elastic {
namespace {

using ::testing::ElementsAre;

// A further server that has no room does not end the job that asked for it.
TEST(Autoscaler, AWaitingServerIsNotWorthTheJob) {
  SharingCluster full(1, 3);
  const int job = full.Job(2, 4);
  full.Run(job, 1, 0, false);
  full.Run(job, 2);
  full.Run(job, 1, ClusterProcess::kNone, false);
  const ScalingDecision decision = full.Decide();
  EXPECT_EQ(decision.targets[0].workers, 2U);
  EXPECT_TRUE(decision.victims.empty());
  EXPECT_TRUE(decision.puts.empty());
}

TEST(Autoscaler, A1_Fulfilment) {
  EXPECT_EQ(Fulfilment(1, 2, 2), 1);
  EXPECT_EQ(Fulfilment(1, 2, 1), 0);
  EXPECT_EQ(Fulfilment(1, 3, 2), 0.5);
  EXPECT_EQ(Fulfilment(1, 1, 1), 1);
}

// The last slot goes to the job that is furthest below its limit, then to the one that asks for
// less.
TEST(Autoscaler, A2_WhoGetsTheNextSlot) {
  SharingCluster by_fulfilment(1, 5);
  by_fulfilment.Job(1, 3);
  by_fulfilment.Job(1, 20);
  by_fulfilment.Run(0, 2);
  by_fulfilment.Run(1, 2);
  by_fulfilment.Pass(60);
  by_fulfilment.Converge();
  EXPECT_EQ(by_fulfilment.Workers(0), 2);
  EXPECT_EQ(by_fulfilment.Workers(1), 3);

  const Capacity none{1, kGiga, 0}, gpu{1, kGiga, 1}, cpu{2, kGiga, 0}, memory{1, 2 * kGiga, 0};
  const std::vector<std::pair<Capacity, Capacity>> less_and_more = {
      {none, gpu}, {none, cpu}, {none, memory}, {cpu, gpu}, {memory, cpu}};
  for (const auto& [less, more] : less_and_more) {
    SharingCluster ties(1, 4 + 3 * less.cpu, 100 * kGiga, 10);
    ties.state.nodes[0].capacity.cpu = 2 * more.cpu - more.cpu + 2 * less.cpu;  // of each 1, and 1
    ties.Job(1, 10, 0, more);
    ties.Job(1, 10, 0, less);
    ties.Decide();
    EXPECT_EQ(ties.Workers(1), 2);
    EXPECT_EQ(ties.Workers(0), 1);
  }
}

TEST(Autoscaler, A3_StopsExactlyAtTheAllowedLoad) {
  for (const auto& [load, expected] : {std::pair(1.0, 10), std::pair(0.8, 8), std::pair(0.9, 9)}) {
    SharingCluster cluster;
    cluster.options.load = load;
    cluster.Job(1, 10);
    cluster.Run(0, 10);
    cluster.Decide();
    EXPECT_EQ(cluster.Workers(0), expected) << load;
  }
  SharingCluster foreground;
  foreground.options.load = 0.5;
  foreground.Job(2, 10);
  foreground.Run(0, 6);
  foreground.Run(ClusterProcess::kNone, 3, 0, false);
  foreground.Decide();
  EXPECT_EQ(foreground.Workers(0), 2);  // never below its smallest number while that fits
}

TEST(Autoscaler, A4_NoMemoryNoNodeNoGpu) {
  SharingCluster memory(1, 10, 2 * kGiga);
  memory.Job(1, 10);
  memory.Converge();
  EXPECT_EQ(memory.Workers(0), 2);
  SharingCluster nodes(4, 3);  // 12 processors, but no node has 4 free
  nodes.Job(1, 10, 0, {4, kGiga, 0});
  nodes.Converge();
  EXPECT_EQ(nodes.Workers(0), 0);
  SharingCluster gpu(1, 10, 100 * kGiga, 3);
  gpu.Job(1, 10, 0, {1, kGiga, 1});
  gpu.Converge();
  EXPECT_EQ(gpu.Workers(0), 3);
}

TEST(Autoscaler, A5_MoreThanTheLargestNumberShrinksToIt) {
  SharingCluster cluster;
  cluster.Job(1, 3);
  cluster.Run(0, 7);
  const ScalingDecision decision = cluster.Decide();
  EXPECT_EQ(decision.victims.size(), 4U);
  EXPECT_EQ(cluster.Workers(0), 3);
}

// Servers with 4 processors and workers with 5: on the fullest node, which is the small one, both
// servers would leave no room for a worker, and room on the large node would stay unused.
TEST(Autoscaler, ProcessesArePutWhereWhatIsLeftIsOfUse) {
  SharingCluster cluster(0);
  cluster.state.nodes = {{"small", {11.6, 100 * kGiga, 0}, false},
                         {"large", {23.6, 100 * kGiga, 0}, false}};
  cluster.Job(1, 10, 0, {5, kGiga, 0});
  cluster.Run(0, 2, ClusterProcess::kNone, false);
  for (ClusterProcess& process : cluster.state.processes) {
    process.request = {4, kGiga, 0};
  }
  const Fragmentation fragmentation(cluster.state);
  EXPECT_NEAR(fragmentation.Lost(23.6), 0.6, 1e-9);
  EXPECT_NEAR(fragmentation.Lost(11.6), 1.6, 1e-9);
  EXPECT_NEAR(fragmentation.Lost(7.6), 2.6, 1e-9);
  EXPECT_NEAR(fragmentation.Lost(3), 3, 1e-9);
  EXPECT_EQ(fragmentation.Lost(0), 0);
  cluster.Converge();
  EXPECT_EQ(cluster.state.processes[0].node, 1);
  EXPECT_EQ(cluster.state.processes[1].node, 1);
  EXPECT_EQ(cluster.Workers(0), 5);
}

TEST(Autoscaler, A8_AJobThatArrivesWhenAllIsTakenGetsItsShareAtOnce) {
  SharingCluster cluster(1, 12);
  cluster.Job(1, 20);
  cluster.Job(1, 20);
  cluster.Converge();
  EXPECT_EQ(cluster.Workers(0) + cluster.Workers(1), 12);
  cluster.Job(2, 20);
  const ScalingDecision decision = cluster.Decide();
  EXPECT_EQ(decision.targets[2].workers, 4U);
  EXPECT_EQ(decision.victims.size(), 4U);
  EXPECT_TRUE(decision.starts.empty());  // there is no room yet
  cluster.Settle();
  cluster.Decide();
  EXPECT_EQ(cluster.Workers(2), 4);
  EXPECT_EQ(cluster.Workers(0), 4);
  EXPECT_EQ(cluster.Workers(1), 4);
}

TEST(Autoscaler, A8_ServersAndTheSmallestNumberComeTogetherOrNotAtAll) {
  SharingCluster cluster(1, 10);
  cluster.Job(4, 20, 0);
  cluster.Run(0, 10);
  cluster.Job(4, 20, 0);
  cluster.Run(1, 3, ClusterProcess::kNone, false);  // servers that wait
  const ScalingDecision no = cluster.Decide();      // 4 + 4 + 3 are too many
  EXPECT_EQ(no.targets[1].workers, 0U);
  EXPECT_TRUE(no.victims.empty());
  cluster.state.jobs[1].min = 2;
  const ScalingDecision yes = cluster.Decide();
  EXPECT_GE(yes.targets[1].workers, 2U);
  EXPECT_GE(yes.targets[0].workers, 4U);
}

TEST(Autoscaler, A9_AJobThatIsNearlyDoneGetsNoMore) {
  SharingCluster cluster;
  cluster.Job(1, 10);
  cluster.Run(0, 2);
  cluster.state.jobs[0].throughput = {{2, 1000}};
  cluster.state.jobs[0].rows_left = 5'000;  // 5 s
  cluster.Converge();
  EXPECT_EQ(cluster.Workers(0), 2);
  cluster.state.jobs[0].rows_left = 500'000;
  cluster.Converge();
  EXPECT_EQ(cluster.Workers(0), 10);
}

TEST(Autoscaler, A10_NobodyGrowsPastTheKnee) {
  SharingCluster cluster(1, 32);
  cluster.Job(1, 30);
  cluster.state.jobs[0].throughput = {{1, 100}, {8, 800}, {12, 840}};
  cluster.Job(1, 12);
  cluster.Converge();
  EXPECT_EQ(cluster.Workers(0), 8);
  EXPECT_EQ(cluster.Workers(1), 12);  // the other job can use the rest
}

// However the workers of two jobs lie on two full nodes, each with some of both: a service takes
// two places of one node, the jobs lose one worker each, and no other has to move.
TEST(Autoscaler, AServiceEndsAsManyWorkersAsItNeeds) {
  for (unsigned arrangement = 0; arrangement < 1U << 8; ++arrangement) {
    SharingCluster cluster(2, 4);
    cluster.Job(1, 8);
    cluster.Job(1, 8);
    std::array<std::array<int, 2>, 2> count{};  // by node, by job
    for (unsigned i = 0; i < 8; ++i) {
      const int job = (arrangement >> i & 1) != 0 ? 1 : 0;
      cluster.Run(job, 1, i < 4 ? 0 : 1);
      ++count[i < 4 ? 0 : 1][static_cast<size_t>(job)];
    }
    if (count[0][0] + count[1][0] != 4 || count[0][0] % 4 == 0) {
      continue;
    }
    cluster.Run(ClusterProcess::kNone, 1, ClusterProcess::kNone, false);
    cluster.state.processes.back().request.cpu = 2;
    EXPECT_EQ(cluster.Decide().victims.size(), 2U) << arrangement;
    EXPECT_EQ(cluster.Workers(0), 3) << arrangement;
    EXPECT_EQ(cluster.Workers(1), 3) << arrangement;
  }
}

TEST(Autoscaler, A13_MoreMemoryAfterOutOfMemoryAndNothingNewOnASuspectNode) {
  SharingCluster cluster(2, 4, 8 * kGiga);
  cluster.state.nodes[0].suspect = true;
  cluster.Job(1, 20, 0, {1, 2 * kGiga, 0});
  cluster.state.jobs[0].out_of_memory = 1;
  const ScalingDecision decision = cluster.Decide();
  EXPECT_EQ(decision.targets[0].worker.memory_bytes, 3 * kGiga);
  EXPECT_EQ(decision.targets[0].workers, 2U);  // 3 GiB of 8 on the good node
  for (const ScalingDecision::Start& start : decision.starts) {
    EXPECT_EQ(start.node, 1);
  }
  cluster.state.jobs[0].out_of_memory = 40;
  EXPECT_EQ(Autoscale(cluster.state, {}, {}, cluster.now).targets[0].worker.memory_bytes,
            8 * kGiga);  // not more than any node has
}

TEST(Autoscaler, HigherPrioritiesTakeWorkersAndInNeedTheLastOne) {
  SharingCluster cluster(1, 4);
  cluster.Job(1, 4, 0);
  cluster.Converge();
  EXPECT_EQ(cluster.Workers(0), 4);
  cluster.Job(1, 8, 10);
  cluster.Converge();
  EXPECT_EQ(cluster.Workers(0), 1);  // its smallest number
  EXPECT_EQ(cluster.Workers(1), 3);
  cluster.Job(4, 4, 20);
  cluster.Converge();
  EXPECT_EQ(cluster.Workers(2), 4);  // needs all of them, so the others wait
  EXPECT_EQ(cluster.Workers(0) + cluster.Workers(1), 0);
}

TEST(Autoscaler, VictimsAreThoseThatLoseLeast) {
  SharingCluster cluster(3, 2);
  cluster.Job(1, 6);
  for (int node = 0; node < 3; ++node) {
    cluster.Run(0, 1, node);
    cluster.Pass(1);
    cluster.Run(0, 1, node);
  }
  cluster.state.nodes[0].suspect = true;
  cluster.state.processes[2].cost = 100;
  cluster.state.processes[3].cost = 5;
  cluster.state.jobs[0].max = 3;
  // First the two on the suspect node, then the youngest without open work.
  EXPECT_THAT(cluster.Decide().victims, ElementsAre(0, 1, 5));
}

TEST(Autoscaler, WeightsShareInTheirProportion) {
  SharingCluster cluster(1, 30);
  cluster.Job(1, 30);
  cluster.Job(1, 30);
  cluster.state.jobs[0].weight = 2;
  cluster.Converge();
  EXPECT_NEAR(cluster.Workers(0), 20, 1);
  EXPECT_EQ(cluster.Workers(0) + cluster.Workers(1), 30);
}

TEST(Autoscaler, ThroughputIsReadBetweenAndBeyondItsMeasurements) {
  ClusterJob job;
  EXPECT_EQ(ThroughputAt(job, 3), 3);
  job.throughput = {{2, 100}, {4, 180}};
  EXPECT_EQ(ThroughputAt(job, 1), 50);
  EXPECT_EQ(ThroughputAt(job, 3), 140);
  EXPECT_EQ(ThroughputAt(job, 6), 260);
  job.throughput = {{2, 100}, {4, 90}};  // noise: more workers do not really do less
  EXPECT_EQ(ThroughputAt(job, 8), 100);
}

}  // namespace
}  // namespace sluice::elastic
