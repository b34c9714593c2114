// States of a cluster that nobody means: the decision stays quick, fair and explained.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <limits>

#include "elastic/fleet/autoscaler.h"

namespace sluice::elastic {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kGibibyte = int64_t{1} << 30;
constexpr AutoscalerOptions kAtOnce = {.hysteresis_seconds = 0};

TimePoint TimeAt(double seconds) {
  return std::chrono::duration_cast<TimePoint>(std::chrono::duration<double>(seconds));
}

struct BadInput {
  void Node(double cpu, int64_t memory = 64 * kGibibyte) {
    state.nodes.push_back({"n" + std::to_string(state.nodes.size()), {cpu, memory, 0, 110}});
  }
  void Job(uint32_t min, uint32_t max, double cpu = 1) {
    ClusterJob job;
    job.name = "job" + std::to_string(state.jobs.size());
    job.min = min;
    job.max = max;
    job.arrival = TimeAt(static_cast<double>(state.jobs.size()));
    job.worker = {cpu, kGibibyte, 0, 1};
    state.jobs.push_back(job);
  }
  void Start(const ScalingDecision& decision) {
    for (const ScalingDecision::Start& start : decision.starts) {
      ClusterProcess process;
      process.name = "p" + std::to_string(state.processes.size());
      process.job = start.job;
      process.node = start.node;
      process.worker = true;
      process.request = decision.targets[static_cast<size_t>(start.job)].worker;
      state.processes.push_back(process);
    }
  }
  ClusterState state;
};

TEST(AutoscalerBadInput, AMinimumBeyondTheClusterWaitsWithItsReasonAndHoldsUpNobody) {
  BadInput bad;
  bad.Node(8);
  bad.Job(9, 20);
  bad.Job(1, 20);
  const ScalingDecision decision = Autoscale(bad.state, kAtOnce, {}, TimeAt(100));
  EXPECT_EQ(decision.targets[0].workers, 0U);
  EXPECT_EQ(decision.targets[0].reason,
            "it needs at least 9 workers, and all nodes together have room for 8");
  EXPECT_EQ(decision.targets[1].workers, 8U);
}

TEST(AutoscalerBadInput, ClustersWithoutNodesOrCapacityGiveNothing) {
  BadInput bad;
  bad.Job(1, 4);
  EXPECT_EQ(Autoscale(bad.state, kAtOnce, {}, TimeAt(1)).targets[0].reason,
            "the cluster has no node");
  bad.Node(0, 0);
  const ScalingDecision decision = Autoscale(bad.state, kAtOnce, {}, TimeAt(1));
  EXPECT_EQ(decision.targets[0].workers, 0U);
  EXPECT_THAT(decision.targets[0].reason, HasSubstr("have room for 0"));
}

TEST(AutoscalerBadInput, AbsurdAmountsAreOnlyAmounts) {
  BadInput bad;
  bad.Node(1e15, std::numeric_limits<int64_t>::max() / 4);
  bad.Node(4);
  bad.Job(1, 10, 1e14);
  bad.Job(1, 10, 1e-12);
  bad.Job(2, 10, 1e15);
  const ScalingDecision decision = Autoscale(bad.state, kAtOnce, {}, TimeAt(1));
  EXPECT_LE(decision.targets[0].workers, 10U);
  EXPECT_EQ(decision.targets[1].workers, 10U);
  EXPECT_EQ(decision.targets[2].workers, 0U);
}

TEST(AutoscalerBadInput, AThousandJobsOfMinimumZeroShareWhatThereIs) {
  BadInput bad;
  for (int i = 0; i < 10; ++i) {
    bad.Node(50);
  }
  for (int i = 0; i < 1'000; ++i) {
    bad.Job(0, 100);
  }
  const ScalingDecision decision = Autoscale(bad.state, kAtOnce, {}, TimeAt(2'000));
  EXPECT_EQ(decision.starts.size(), 500U);
  for (const ScalingDecision::Target& target : decision.targets) {
    EXPECT_LE(target.workers, 1U);
    EXPECT_NE(target.reason, "");
  }
  bad.Start(decision);
  const ScalingDecision again = Autoscale(bad.state, kAtOnce, {}, TimeAt(2'001));
  EXPECT_TRUE(again.starts.empty());
  EXPECT_TRUE(again.victims.empty()) << "nothing oscillates";
}

// Ready for a second of every two.
TEST(AutoscalerBadInput, ANodeThatFlapsGetsNothingNewAndKeepsWhatItHas) {
  BadInput bad;
  bad.Node(4);
  bad.Node(4);
  bad.Job(1, 8);
  AutoscalerHistory history;
  size_t starts = 0, victims = 0;
  for (int second = 0; second < 60; ++second) {
    bad.state.nodes[1].suspect = second % 2 == 1;
    const ScalingDecision decision =
        Autoscale(bad.state, AutoscalerOptions(), history, TimeAt(second));
    history = decision.history;
    starts += decision.starts.size();
    victims += decision.victims.size();
    bad.Start(decision);
  }
  EXPECT_EQ(victims, 0U);
  EXPECT_LE(starts, 8U);
}

// A clock that is put back by ten minutes holds up growth by no more than the usual patience.
TEST(AutoscalerBadInput, AClockThatIsPutBackCostsNoMoreThanThePatience) {
  BadInput bad;
  bad.Node(4);
  bad.Job(1, 4);
  ScalingDecision decision = Autoscale(bad.state, AutoscalerOptions(), {}, TimeAt(1'000));
  bad.Start(decision);
  bad.Node(4);
  bad.state.jobs[0].max = 8;
  bad.state.jobs[0].arrival = TimeAt(5'000);  // by the clock of somebody else
  decision = Autoscale(bad.state, AutoscalerOptions(), decision.history, TimeAt(1'001));
  EXPECT_TRUE(decision.starts.empty());
  decision = Autoscale(bad.state, AutoscalerOptions(), decision.history, TimeAt(401));
  decision = Autoscale(bad.state, AutoscalerOptions(), decision.history, TimeAt(406));
  EXPECT_EQ(decision.starts.size(), 4U);
}

}  // namespace
}  // namespace sluice::elastic
