#include "tests/simulation/cluster_experiments.h"

#include <gtest/gtest.h>

#include <string>

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

// Both grow to their share in one step: nobody has seen one of them with fewer workers.
TEST(ClusterExperiments, WorkersThatAreOfLittleUseGoToTheOtherJob) {
  ClusterWorld world(Quick(WorldOptions::Scaling::kAutoscaler, 1));
  for (int node = 0; node < 3; ++node) {
    world.AddNode("n" + std::to_string(node), {8, int64_t{64} << 30, 0});
  }
  WorldJob job;
  job.max = 24;
  job.worker = {1, int64_t{1} << 30, 0};
  job.serial = 0;
  job.work = 1e6;
  job.name = "scales";
  world.AddJob(job);
  job.serial = 0.5;  // at most twice as fast as with one worker
  job.name = "does not";
  world.AddJob(job);
  world.RunUntil(300);
  EXPECT_EQ(world.Workers(0) + world.Workers(1), 24U);
  EXPECT_LE(world.Workers(1), 5U);
  const uint64_t starts = world.starts();
  world.RunUntil(900);
  EXPECT_LE(world.starts(), starts + 8) << "what is known is not tried again";
}

}  // namespace
}  // namespace sluice::elastic
