// The table of cases in the simulated cluster.
#include "tests/elastic/fleet/sharing_cases.h"

#include <gtest/gtest.h>

#include "tests/simulation/cluster_world.h"

namespace sluice::elastic {
namespace {

class SimulatedSharing : public testing::TestWithParam<SharingCase> {};

TEST_P(SimulatedSharing, InTheSimulation) {
  constexpr int64_t kGiga = int64_t{1} << 30;
  for (const auto placing : {WorldOptions::Placing::kPlanned, WorldOptions::Placing::kScheduler}) {
    WorldOptions options;
    options.placing = placing;
    ClusterWorld world(options);
    for (const int cpu : GetParam().nodes) {
      world.AddNode("n" + std::to_string(world.state().nodes.size()),
                    {static_cast<double>(cpu), 64 * kGiga, 0});
    }
    for (const SharingCase::Job& job : GetParam().jobs) {
      WorldJob described;
      described.min = job.min;
      described.max = job.max;
      described.priority = job.priority;
      described.worker = {1, kGiga, 0};
      world.AddJob(described);
      world.RunUntil(world.now() + 1);
    }
    world.RunUntil(30);
    for (size_t i = 0; i < GetParam().services.size(); ++i) {
      world.SetService("service" + std::to_string(i),
                       {static_cast<double>(GetParam().services[i]), kGiga, 0}, 1, std::nullopt);
    }
    world.RunUntil(90);
    for (size_t job = 0; job < GetParam().jobs.size(); ++job) {
      EXPECT_EQ(world.Workers(job), GetParam().jobs[job].workers) << "job " << job;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, SimulatedSharing, testing::ValuesIn(elastic::SharingCases()),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace sluice::elastic
