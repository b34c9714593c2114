#include "tests/simulation/cluster_experiments.h"

#include <gtest/gtest.h>

// Goals of published experiments, on virtual time; bench/cluster_report has their figures.
namespace sluice::elastic {
namespace {

WorldOptions Quick(WorldOptions::Scaling scaling, uint64_t seed) {
  WorldOptions options;
  options.scaling = scaling;
  options.seed = seed;
  options.shortest_start_seconds = 1;
  options.longest_start_seconds = 3;
  return options;
}

TEST(ClusterExperiments, A6_EdlCase1) {
  for (uint64_t seed = 1; seed <= 2; ++seed) {
    WorldOptions options;
    options.seed = seed;
    const ExperimentResult result = RunEdlCase1(options);
    EXPECT_LE(result.pending_seconds, 6) << seed;
    EXPECT_GE(result.jain, 0.99) << seed;
    EXPECT_GE(result.utilisation, 0.9) << seed;
    EXPECT_EQ(result.jobs_below_minimum, 0) << seed;
  }
}

TEST(ClusterExperiments, A7_EdlCase2) {
  for (uint64_t seed = 1; seed <= 2; ++seed) {
    WorldOptions options;
    options.seed = seed;
    const ExperimentResult result = RunEdlCase2(options);
    EXPECT_LE(result.service_short, 0.026) << seed;
    EXPECT_LE(result.service_back_seconds, 15) << seed;
  }
}

// The gang is the check of the simulation: 795 s were published.
TEST(ClusterExperiments, ElasticDlE1) {
  using Scaling = WorldOptions::Scaling;
  EXPECT_NEAR(RunTwoJobs(ElasticDlE1(), Quick(Scaling::kGang, 1)).finished_seconds, 795, 20);
  EXPECT_LE(RunTwoJobs(ElasticDlE1(), Quick(Scaling::kAutoscaler, 1)).finished_seconds, 480);
}

}  // namespace
}  // namespace sluice::elastic
