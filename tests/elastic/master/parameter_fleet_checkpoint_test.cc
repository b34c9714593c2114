#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "tests/elastic/master/fleet_world.h"

namespace sluice::elastic {
namespace {

namespace fs = std::filesystem;

// Checkpoints are written while a worker pushes; the last of them, restored on another number of
// servers, is a state that the undisturbed run went through, and continues to its end.
TEST_F(ParameterFleetTest, P11_P14_ACutThroughRunningTrainingIsConsistent) {
  constexpr int64_t kBatches = 150;
  const CheckpointDirectory directory = Directory();
  FleetWorld world(plan_, *network_, 3, directory);
  const auto worker = world.Worker();
  for (int64_t batch = 0; batch < kBatches; ++batch) {
    if (batch == 20 || batch == 60) {
      world.fleet().RequestCheckpoint();
    }
    ASSERT_TRUE(world.Push(*worker, batch).ok());
  }
  world.Await([&] { return world.Happened("checkpoint_written"); });
  EXPECT_FALSE(world.Happened("checkpoint_failed"));
  const std::string bits = world.Bits();
  world.fleet().Stop();
  const auto found = directory.Newest(DescribeModel(plan_.model(), *network_)).value();
  ASSERT_TRUE(found.has_value());
  const int64_t committed = std::stoll(found->manifest.queue_state);

  FleetWorld restored(plan_, *network_, 2, std::nullopt, *found);
  const auto again = restored.Worker();
  const int64_t applied = again->AppliedBatches(Epoch(1), ShardId(0))->value();
  EXPECT_GE(applied, committed) << "what the queue counts is in the parameters";
  EXPECT_LE(applied, committed + 1) << "one worker has one batch under way";
  for (int64_t batch = applied; batch < kBatches; ++batch) {
    ASSERT_TRUE(restored.Push(*again, batch).ok());
  }
  EXPECT_EQ(restored.Bits(), bits);
}

TEST_F(ParameterFleetTest, ADiskThatTakesNothingDoesNotEndTheJob) {
  FleetWorld world(plan_, *network_, 2, Directory());
  const auto worker = world.Worker();
  ASSERT_TRUE(world.Push(*worker, 0).ok());
  fs::remove_all(path_);
  world.fleet().RequestCheckpoint();
  world.Await([&] { return world.Happened("checkpoint_failed"); });
  ASSERT_TRUE(world.Push(*worker, 1).ok());
  fs::create_directories(path_);
  world.fleet().RequestCheckpoint();
  world.Await([&] { return world.Happened("checkpoint_written"); });
  ASSERT_TRUE(world.Push(*worker, 2).ok());
}

}  // namespace
}  // namespace sluice::elastic
