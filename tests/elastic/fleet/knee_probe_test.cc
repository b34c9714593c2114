#include "elastic/fleet/knee_probe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "elastic/fleet/autoscaler.h"
#include "tests/elastic/fleet/sharing_cluster.h"

namespace sluice::elastic {
namespace {

// Two jobs of eleven workers each, as they began; one trains at the same speed with four.
class KneeProbeTest : public ::testing::Test {
 protected:
  KneeProbeTest() : cluster_(2, 11) {
    for (int i = 0; i < 2; ++i) {
      cluster_.Job(1, 22);
      cluster_.Run(i, 11, i);
      Measure(i, 11, 1100);
    }
  }
  ClusterJob& job(int index) { return cluster_.state.jobs[static_cast<size_t>(index)]; }
  // As a controller does, which remembers the corners only.
  void Measure(int index, uint32_t workers, double rate) {
    measured_[index][workers] = rate;
    job(index).throughput = LeastConcave({measured_[index].begin(), measured_[index].end()});
    job(index).measured_from = measured_[index].begin()->first;
  }
  double RateOf(int index, int workers) const {
    return index == slow_ ? 100.0 * std::min(workers, useful_) : 100.0 * workers;
  }
  // Ten seconds, in which each number of workers is measured.
  ScalingDecision TenSeconds() {
    ScalingDecision last;
    for (int second = 0; second < 10; ++second) {
      last = cluster_.Decide();
      for (int i = 0; i < 2; ++i) {
        job(i).granted = last.targets[static_cast<size_t>(i)].workers;
      }
      cluster_.Settle();
      cluster_.Pass(1);
    }
    for (int i = 0; i < 2; ++i) {
      Measure(i, static_cast<uint32_t>(cluster_.Workers(i)), RateOf(i, cluster_.Workers(i)));
    }
    return last;
  }

  SharingCluster cluster_;
  int slow_ = 0, useful_ = 4;
  std::map<int, std::map<uint32_t, double>> measured_;
};

TEST_F(KneeProbeTest, WorkersBeyondAKneeThatNobodyHasSeenGoToWhoUsesThem) {
  for (int i = 0; i < 2; ++i) {
    job(i).granted = 11;
    Measure(i, 11, RateOf(i, 11));
  }
  ScalingDecision decision = TenSeconds();
  EXPECT_EQ(cluster_.Workers(0), 9);
  EXPECT_EQ(cluster_.Workers(1), 13);
  EXPECT_EQ(decision.targets[0].reason,
            "it is measured with fewer workers for some seconds, since another job could use them");
  for (int i = 0; i < 20; ++i) {
    decision = TenSeconds();
  }
  EXPECT_GE(cluster_.Workers(0), 3);
  EXPECT_LE(cluster_.Workers(0), 4);
  EXPECT_EQ(cluster_.Workers(0) + cluster_.Workers(1), 22);
  // It stays so.
  const int found = cluster_.Workers(0);
  for (int i = 0; i < 20; ++i) {
    TenSeconds();
    EXPECT_EQ(cluster_.Workers(0), found);
  }
}

TEST_F(KneeProbeTest, WhoUsesItsWorkersGetsThemBackAndIsTriedOnce) {
  slow_ = -1;
  job(0).granted = job(1).granted = 11;
  TenSeconds();
  EXPECT_EQ(cluster_.Workers(0), 9);
  int tries = 0;
  for (int i = 0; i < 30; ++i) {
    TenSeconds();
    tries += cluster_.Workers(0) == 11 ? 0 : 1;
    EXPECT_EQ(cluster_.Workers(0) + cluster_.Workers(1), 22);
  }
  EXPECT_EQ(cluster_.Workers(0), 11);
  EXPECT_LE(tries, 2) << "the other one's";
}

TEST_F(KneeProbeTest, WithoutSomebodyWhoWouldUseThemNobodyIsTried) {
  job(0).granted = job(1).granted = 11;
  const auto chosen = [&] {
    KneeProbes after;
    return ChooseProbe(cluster_.state, {}, {11, 11}, {job(0).max, job(1).max}, {11, 11}, {},
                       cluster_.now, after)
        .has_value();
  };
  EXPECT_TRUE(chosen());
  job(0).max = job(1).max = 11;
  EXPECT_FALSE(chosen());
  job(0).max = job(1).max = 22;
  job(0).rows_left = job(1).rows_left = 1100 * 119;
  EXPECT_FALSE(chosen()) << "they are over too soon";
  job(0).rows_left = job(1).rows_left = 1100 * 121;
  EXPECT_TRUE(chosen());
  job(0).min = job(1).min = 11;
  EXPECT_FALSE(chosen());
  job(0).min = job(1).min = 1;
  job(0).measured_from = job(1).measured_from = 2;
  EXPECT_FALSE(chosen());
  job(0).measured_from = 11;
  job(0).throughput = {{11, 1100}, {22, 2090}};
  EXPECT_FALSE(chosen()) << "no bend above what it has, so none below";
  job(0).throughput = {{11, 1100}, {22, 1800}};
  EXPECT_TRUE(chosen());
  job(0).throughput = {{11, 1100}};
  job(0).measured_from = 2;
  job(0).measured_from = 11;
  EXPECT_TRUE(chosen());
  job(0).priority = 1;
  EXPECT_FALSE(chosen()) << "a job of a lower priority takes nothing from it";
}

TEST_F(KneeProbeTest, ATryThatMeasuresNothingEnds) {
  job(0).granted = job(1).granted = 11;
  int fewer = 0;
  for (int second = 0; second < 90; ++second) {
    const ScalingDecision decision = cluster_.Decide();
    for (int i = 0; i < 2; ++i) {
      job(i).granted = decision.targets[static_cast<size_t>(i)].workers;
    }
    cluster_.Settle();
    cluster_.Pass(1);
    fewer += cluster_.Workers(0) < 11 ? 1 : 0;
  }
  EXPECT_GE(fewer, 15);
  EXPECT_LE(fewer, 25);
}

}  // namespace
}  // namespace sluice::elastic
