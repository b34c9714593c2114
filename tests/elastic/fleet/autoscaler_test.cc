#include "elastic/fleet/autoscaler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>

#include "elastic/fleet/fragmentation.h"

namespace sluice::elastic {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kGiga = int64_t{1} << 30;

// A cluster that carries out the autoscaler's decisions at once; victims end when Settle is called.
class Cluster {
 public:
  explicit Cluster(int nodes = 1, double cpu = 10, int64_t memory = 100 * kGiga, double gpu = 0) {
    for (int i = 0; i < nodes; ++i) {
      state.nodes.push_back({"n" + std::to_string(i), {cpu, memory, gpu}, false});
    }
  }
  int Job(uint32_t min, uint32_t max, int priority = 0, Capacity worker = {1, kGiga, 0}) {
    ClusterJob job;
    job.name = "job" + std::to_string(state.jobs.size());
    job.min = min;
    job.max = max;
    job.priority = priority;
    job.arrival = now;
    job.worker = worker;
    state.jobs.push_back(job);
    return static_cast<int>(state.jobs.size()) - 1;
  }
  void Run(int job, int count, int node = 0, bool worker = true) {
    for (int i = 0; i < count; ++i) {
      ClusterProcess process;
      process.name = "p" + std::to_string(state.processes.size());
      process.node = node;
      process.job = job;
      process.worker = worker;
      process.request =
          job >= 0 ? state.jobs[static_cast<size_t>(job)].worker : Capacity{1, kGiga, 0};
      process.started = now;
      state.processes.push_back(process);
    }
  }
  ScalingDecision Decide() {
    ScalingDecision decision = Autoscale(state, options, history, now);
    history = decision.history;
    for (const size_t victim : decision.victims) {
      state.processes[victim].terminating = true;
    }
    for (const auto& [process, node] : decision.puts) {
      state.processes[process].node = node;
    }
    for (const ScalingDecision::Start& start : decision.starts) {
      Run(start.job, 1, start.node);
    }
    return decision;
  }
  void Pass(double seconds) {
    now += std::chrono::duration_cast<TimePoint>(std::chrono::duration<double>(seconds));
  }
  void Settle() {
    std::erase_if(state.processes, [](const ClusterProcess& p) { return p.terminating; });
  }
  int Workers(int job) const {
    return static_cast<int>(std::count_if(
        state.processes.begin(), state.processes.end(), [job](const ClusterProcess& p) {
          return p.job == job && p.worker && !p.terminating && p.node != ClusterProcess::kNone;
        }));
  }
  // Repeats until nothing changes.
  void Converge() {
    for (int i = 0; i < 20; ++i) {
      Decide();
      Settle();
      Pass(5);
    }
  }

  ClusterState state;
  AutoscalerOptions options;
  AutoscalerHistory history;
  TimePoint now = std::chrono::hours(1);
};

// A further server that has no room does not end the job that asked for it.
TEST(Autoscaler, AWaitingServerIsNotWorthTheJob) {
  Cluster full(1, 3);
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
  Cluster by_fulfilment(1, 5);
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
    Cluster ties(1, 4 + 3 * less.cpu, 100 * kGiga, 10);
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
    Cluster cluster;
    cluster.options.load = load;
    cluster.Job(1, 10);
    cluster.Run(0, 10);
    cluster.Decide();
    EXPECT_EQ(cluster.Workers(0), expected) << load;
  }
  Cluster foreground;
  foreground.options.load = 0.5;
  foreground.Job(2, 10);
  foreground.Run(0, 6);
  foreground.Run(ClusterProcess::kNone, 3, 0, false);
  foreground.Decide();
  EXPECT_EQ(foreground.Workers(0), 2);  // never below its smallest number while that fits
}

TEST(Autoscaler, A4_NoMemoryNoNodeNoGpu) {
  Cluster memory(1, 10, 2 * kGiga);
  memory.Job(1, 10);
  memory.Converge();
  EXPECT_EQ(memory.Workers(0), 2);
  Cluster nodes(4, 3);  // 12 processors, but no node has 4 free
  nodes.Job(1, 10, 0, {4, kGiga, 0});
  nodes.Converge();
  EXPECT_EQ(nodes.Workers(0), 0);
  Cluster gpu(1, 10, 100 * kGiga, 3);
  gpu.Job(1, 10, 0, {1, kGiga, 1});
  gpu.Converge();
  EXPECT_EQ(gpu.Workers(0), 3);
}

TEST(Autoscaler, A5_MoreThanTheLargestNumberShrinksToIt) {
  Cluster cluster;
  cluster.Job(1, 3);
  cluster.Run(0, 7);
  const ScalingDecision decision = cluster.Decide();
  EXPECT_EQ(decision.victims.size(), 4U);
  EXPECT_EQ(cluster.Workers(0), 3);
}

// Servers with 4 processors and workers with 5: on the fullest node, which is the small one, both
// servers would leave no room for a worker, and room on the large node would stay unused.
TEST(Autoscaler, ProcessesArePutWhereWhatIsLeftIsOfUse) {
  Cluster cluster(0);
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
  Cluster cluster(1, 12);
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
  Cluster cluster(1, 10);
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
  Cluster cluster;
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
  Cluster cluster(1, 32);
  cluster.Job(1, 30);
  cluster.state.jobs[0].throughput = {{1, 100}, {8, 800}, {12, 840}};
  cluster.Job(1, 12);
  cluster.Converge();
  EXPECT_EQ(cluster.Workers(0), 8);
  EXPECT_EQ(cluster.Workers(1), 12);  // the other job can use the rest
}

TEST(Autoscaler, A10_AMeasurementThatVariesMovesNobody) {
  Cluster cluster(1, 32);
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
  Cluster cluster(1, 4);
  cluster.Job(4, 8);
  cluster.Job(1, 3);
  cluster.Run(1, 3);
  cluster.Converge();
  EXPECT_EQ(cluster.Workers(1), 3);
  EXPECT_EQ(cluster.Workers(0), 0);
}

TEST(Autoscaler, OfJobsOfTheSameSecondTheOneWhoseWorkersAreBeingStartedKeepsThem) {
  Cluster cluster(1, 6);
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
  Cluster cluster;
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
  Cluster cluster;
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
  Cluster cluster(1, 8);
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

// However the workers of two jobs lie on two full nodes, each with some of both: a service takes
// two places of one node, the jobs lose one worker each, and no other has to move.
TEST(Autoscaler, AServiceEndsAsManyWorkersAsItNeeds) {
  for (unsigned arrangement = 0; arrangement < 1U << 8; ++arrangement) {
    Cluster cluster(2, 4);
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

TEST(Autoscaler, A12_WhatEndsIsNotShrunkForTwice) {
  Cluster cluster;
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
  Cluster cluster;
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

TEST(Autoscaler, A13_MoreMemoryAfterOutOfMemoryAndNothingNewOnASuspectNode) {
  Cluster cluster(2, 4, 8 * kGiga);
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
  Cluster cluster(1, 4);
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
  Cluster cluster(3, 2);
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
  Cluster cluster(1, 30);
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
