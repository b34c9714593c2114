#include "elastic/master/parameter_fleet.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/elastic/master/fleet_world.h"

namespace sluice::elastic {
namespace {

// A master died between the two rounds of installing a map, at its third attempt: one server is
// stopped, the other already uses the map. The successor installs the last map that all servers
// know again, under a version that no server has seen with another map.
TEST_F(ParameterFleetTest, K20_AMapThatAMasterLeftHalfwayIsInstalledAnew) {
  FleetWorld world(plan_, *network_, 2, std::nullopt);
  const auto worker = world.Worker();
  ASSERT_TRUE(world.Push(*worker, 0).ok());
  const PartitionMap known = world.fleet().map();
  PartitionMap halfway = known;
  halfway.version = halfway.version.Next().Next().Next();
  std::swap(halfway.primary, halfway.backup);
  world.TakeOver([&] {
    for (const ServerId server : {ServerId(0), ServerId(1)}) {
      ASSERT_TRUE(FleetWorld::Order(halfway, server, ParameterControl::Phase::kFreeze).ok());
    }
    ASSERT_TRUE(FleetWorld::Order(halfway, ServerId(1), ParameterControl::Phase::kAdopt).ok());
  });
  world.Await([&] { return world.fleet().map().version > known.version; });
  const PartitionMap now = world.fleet().map();
  ASSERT_GT(now.version, halfway.version) << "two maps of one version";
  EXPECT_EQ(now.primary, known.primary);
  ASSERT_TRUE(world.Push(*worker, 1).ok());
}

// A server that hangs while it is filled is given up after its silence, not after the deadlines of
// calls; pushes wait no longer than that; another takes its place. The evaluated weights are kept
// even if the master dies before it learns so, its successor repeats the order when training has
// continued, and a server is lost whose backup then has them; also by servers that came later.
TEST_F(ParameterFleetTest, E6_WhatWasJudgedIsKeptThroughLostMastersAndServers) {
  FleetWorld world(plan_, *network_, 3, std::nullopt);
  auto worker = world.Worker();
  for (int64_t batch = 0; batch < 4; ++batch) {
    ASSERT_TRUE(world.Push(*worker, batch).ok());
  }
  const std::string judged = world.Bits();
  const KeepOrder order{1, std::vector<int64_t>(worker->Versions().size(), 4)};
  const Result<std::string> digest = world.fleet().Keep(order);
  ASSERT_TRUE(digest.ok()) << digest.status().ToString();
  for (int64_t batch = 4; batch < 8; ++batch) {
    ASSERT_TRUE(world.Push(*worker, batch).ok());
  }
  world.TakeOver([] {});
  EXPECT_EQ(*world.fleet().Keep(order), *digest);
  for (const ServerId lost : {ServerId(0), ServerId(1)}) {
    world.fleet().OnLost(lost, "killed");
    world.Kill(lost);
    world.Await([&] {
      const PartitionMap map = world.fleet().map();
      return !map.servers.contains(lost) && map.servers.size() == 3;
    });
    worker = world.Worker();
    ASSERT_TRUE(world.Push(*worker, 8 + lost.value()).ok());
    EXPECT_EQ(*world.fleet().Keep(order), *digest);
    const Result<models::NetworkWeights> kept = world.fleet().Collect(*network_, *digest);
    ASSERT_TRUE(kept.ok()) << kept.status().ToString();
    EXPECT_EQ(models::SaveWeights(*kept), judged);
  }
  // An order to keep weights that are gone is an error, and so are weights other than those kept.
  EXPECT_EQ(world.fleet().Keep({2, order.versions}).status().code(), Code::kFailedPrecondition);
  const Status other = world.fleet().Collect(*network_, "another digest").status();
  EXPECT_EQ(other.diagnostics().front().sqlstate, "XX001") << other.ToString();
}

TEST_F(ParameterFleetTest, AServerThatHangsWhileItIsFilledIsGivenUp) {
  FleetWorld world(plan_, *network_, 2, std::nullopt, std::nullopt, 1);
  const std::jthread beats([&world](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      world.Beat();
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  });
  const auto worker = world.Worker();
  ASSERT_TRUE(world.Push(*worker, 0).ok());
  world.StartDeaf(ServerId(2));
  world.fleet().SetServers(3);
  int64_t batch = 1;
  std::chrono::duration<double> longest(0);
  world.Await([&] {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_TRUE(world.Push(*worker, batch++).ok());
    longest =
        std::max<std::chrono::duration<double>>(longest, std::chrono::steady_clock::now() - begin);
    return world.fleet().map().servers.contains(ServerId(3));
  });
  EXPECT_LT(longest.count(), 10) << "a call's own patience is 15 seconds, the silence 1";
  EXPECT_FALSE(world.fleet().map().servers.contains(ServerId(2)));
  ASSERT_TRUE(world.Push(*worker, batch).ok());
}

TEST_F(ParameterFleetTest, TheLastCopyIsWaitedForWhileItIsSilent) {
  FleetWorld world(plan_, *network_, 2, std::nullopt, std::nullopt, 2);
  world.Beat();
  const auto worker = world.Worker();
  ASSERT_TRUE(world.Push(*worker, 0).ok());
  world.Await(
      [&] { return world.Happened("server_silent"); });  // both are, and neither is given up
  EXPECT_EQ(world.fleet().map().servers.size(), 2U);
  const std::jthread beats([&world](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      world.Beat(ServerId(1));
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  });
  // One is back: the other is not needed any more. The new one reports itself with the first.
  world.Await([&] { return !world.fleet().map().servers.contains(ServerId(0)); });
  world.Await([&] { return world.Stopped(ServerId(0)); });
  EXPECT_FALSE(world.Stopped(ServerId(1)));
  ASSERT_TRUE(world.Push(*worker, 1).ok());
}

TEST_F(ParameterFleetTest, TheLastCopyIsGivenUpInTheEnd) {
  FleetWorld world(plan_, *network_, 1, std::nullopt, std::nullopt, 0.2, 0.8);
  world.Await([&] { return world.Failure().code() == Code::kUnavailable; });
  EXPECT_NE(world.Failure().ToString().find("only copy of 16 of 16"), std::string::npos)
      << world.Failure().ToString();
  EXPECT_TRUE(world.Happened("server_silent"));
  EXPECT_TRUE(world.fleet().lost_partitions());
}

// Partitions move while a worker pushes: the parameters are those of servers that stay.
TEST_F(ParameterFleetTest, P20_ServersComeAndGoWhileAWorkerPushes) {
  FleetWorld moved(plan_, *network_, 2, {});
  const auto worker = moved.Worker();
  int64_t batch = 0;
  for (const uint32_t servers : {4U, 3U, 2U}) {
    moved.fleet().SetServers(servers);
    moved.Await([&] {
      EXPECT_TRUE(moved.Push(*worker, batch++).ok());
      return moved.fleet().map().servers.size() == servers;
    });
    ASSERT_TRUE(moved.Push(*worker, batch++).ok());
  }
  FleetWorld still(plan_, *network_, 2, {});
  const auto other = still.Worker();
  for (int64_t b = 0; b < batch; ++b) {
    ASSERT_TRUE(still.Push(*other, b).ok());
  }
  EXPECT_TRUE(moved.Bits() == still.Bits());
}

TEST_F(ParameterFleetTest, AServerThatIsNotWantedAnyMoreDoesNotStart) {
  FleetWorld world(plan_, *network_, 2, {});
  world.LeaveUnplaced(ServerId(2));
  world.fleet().SetServers(4);
  const auto worker = world.Worker();
  ASSERT_TRUE(world.Push(*worker, 0).ok());
  world.Await([&] { return world.Requested(ServerId(3)); });
  world.fleet().SetServers(3);
  world.Await([&] { return world.Stopped(ServerId(2)); });
  world.Await([&] { return world.fleet().map().servers.contains(ServerId(3)); });
  world.fleet().SetServers(2);
  world.Await([&] { return world.Stopped(ServerId(3)); });
  EXPECT_EQ(world.fleet().map().servers.size(), 2U);
  ASSERT_TRUE(world.Push(*worker, 1).ok());
}

TEST_F(ParameterFleetTest, AServerWithoutRoomDoesNotHoldUpTheRepairOfTheOthers) {
  FleetWorld world(plan_, *network_, 2, {});
  world.LeaveUnplaced(ServerId(2));
  world.fleet().SetServers(3);
  const auto worker = world.Worker();
  ASSERT_TRUE(world.Push(*worker, 0).ok());
  world.fleet().OnLost(ServerId(1), "killed");
  world.Kill(ServerId(1));
  world.Await([&] {
    const PartitionMap map = world.fleet().map();
    return map.servers.size() == 2 && map.servers.contains(ServerId(3));
  });
  const PartitionMap map = world.fleet().map();
  EXPECT_EQ(std::count(map.backup.begin(), map.backup.end(), kNoServer), 0);
  ASSERT_TRUE(world.Push(*worker, 1).ok());
}

TEST_F(ParameterFleetTest, AServerThatDoesNotAnswerForAMomentIsAskedAgain) {
  FleetWorld world(plan_, *network_, 1, {});
  const std::string bits = world.Bits();
  const MapVersion version = world.fleet().map().version;
  world.Kill(world.fleet().map().primary[0]);  // the fleet is not told
  std::jthread again([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    world.Open(world.fleet().map().primary[0]);
  });
  EXPECT_EQ(world.Bits(), bits);
  EXPECT_EQ(world.fleet().map().version, version);
}

}  // namespace
}  // namespace sluice::elastic
