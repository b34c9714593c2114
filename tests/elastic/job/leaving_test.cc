// When a node's drain or a preemption is about to end a process, its work is handed over while it
// still runs.
#include <gtest/gtest.h>

#include <string>

#include "tests/elastic/job/fleet_run.h"

namespace sluice::elastic {
namespace {

plan::TrainPlan SynchronousPlan(uint32_t servers = 2) {
  plan::TrainPlan plan = FleetPlan(2, servers, 4);
  plan.mutable_strategy()->set_mode(plan::Strategy::SYNCHRONOUS);
  plan.mutable_strategy()->set_micro_batches(4);
  plan.mutable_strategy()->set_replicas(servers > 1 ? 1 : 0);
  return plan;
}

// The job with process `name` leaving after its first epoch, but never ending on its own.
FleetRun TrainWithout(const std::string& name, Role role, testing::MemorySource& source,
                      uint32_t servers = 2) {
  bool left = false;
  return TrainWith(SynchronousPlan(servers), source, 500, nullptr,
                   [&](ThreadFleet& fleet, const std::string& kind, const std::string&) {
                     if (kind == "epoch_done" && !left) {
                       left = true;
                       fleet.Leave(name, role);
                     }
                   });
}

TEST(Leaving, AWorkerIsReplacedBeforeItEnds) {
  const auto source = SmallSource(6'000);
  const FleetRun undisturbed = TrainWith(SynchronousPlan(), *source, 500);
  const FleetRun run = TrainWithout("job1-worker-1", Role::kWorker, *source);
  ASSERT_TRUE(undisturbed.outcome.ok()) << undisturbed.outcome.status().ToString();
  ASSERT_TRUE(run.outcome.ok()) << run.outcome.status().ToString();
  EXPECT_EQ(run.Count("worker_lost"), 1) << "once, though its end follows";
  EXPECT_EQ(run.launched.size(), undisturbed.launched.size() + 1);
  EXPECT_EQ(Bits(run), Bits(undisturbed));
}

TEST(Leaving, AServersCopiesTakeItsPlaceBeforeItEnds) {
  const auto source = SmallSource(6'000);
  const FleetRun undisturbed = TrainWith(SynchronousPlan(), *source, 500);
  const FleetRun run = TrainWithout("job1-ps-0", Role::kParameterServer, *source);
  ASSERT_TRUE(undisturbed.outcome.ok()) << undisturbed.outcome.status().ToString();
  ASSERT_TRUE(run.outcome.ok()) << run.outcome.status().ToString();
  EXPECT_EQ(run.Count("server_lost"), 1);
  EXPECT_EQ(Bits(run), Bits(undisturbed));
}

TEST(Leaving, TheOnlyServerGivesItsPartitionsToAnotherBeforeItEnds) {
  const auto source = SmallSource(6'000);
  const FleetRun undisturbed = TrainWith(SynchronousPlan(1), *source, 500);
  const FleetRun run = TrainWithout("job1-ps-0", Role::kParameterServer, *source, 1);
  ASSERT_TRUE(undisturbed.outcome.ok()) << undisturbed.outcome.status().ToString();
  ASSERT_TRUE(run.outcome.ok()) << run.outcome.status().ToString();
  EXPECT_EQ(run.Count("server_leaves"), 1);
  EXPECT_EQ(run.Count("server_lost"), 0);
  EXPECT_EQ(run.Count("training_begins_again"), 0);
  EXPECT_EQ(Bits(run), Bits(undisturbed));
}

}  // namespace
}  // namespace sluice::elastic
