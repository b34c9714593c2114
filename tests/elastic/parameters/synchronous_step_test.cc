#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tests/elastic/parameters/parameter_shard_fixture.h"

// Synchronous training: a shard's step closes over the lanes of all workers.
namespace sluice::elastic {
namespace {

TEST_F(ParameterShardTest, P9_AStepClosesOverAllLanesInAnyOrder) {
  std::string bits;
  for (const std::vector<uint32_t>& order :
       {std::vector<uint32_t>{0, 1, 2, 3}, {3, 1, 0, 2}, {2, 3, 1, 0}}) {
    const auto shard = Make(1, true);
    for (uint32_t lane : order) {
      EXPECT_EQ(shard->version(), 0);
      const float value = 0.1F * static_cast<float>(lane + 1);
      const Owned push = Gradient(Lane(lane, 4, 0), value, {3, static_cast<int64_t>(lane)});
      ASSERT_TRUE(shard->Push(push.request).ok());
      ASSERT_TRUE(shard->Push(push.request).ok()) << "a repetition is acknowledged";
    }
    EXPECT_EQ(shard->version(), 1);
    const std::string now = Bits(*shard);
    EXPECT_TRUE(bits.empty() || bits == now);
    bits = now;
  }
}

// Four workers, then three, then five, while a step is open; and the partition moves to another
// server in the middle of one. Each worker pushes its lanes, some of them again after another
// worker: the steps close, with the bits of one worker that is never disturbed.
TEST_F(ParameterShardTest, P10_AStepClosesOverWhoeverHoldsItsLanes) {
  SetOptimizer("Adam", 0.01);
  const auto push = [&](ParameterShard& shard, int64_t step, const std::vector<uint32_t>& lanes) {
    for (uint32_t lane : lanes) {
      const float value = 0.01F * static_cast<float>(step * 8 + lane + 1);
      const Owned gradient = Gradient(Lane(lane, 8, step), value, {3, static_cast<int64_t>(lane)});
      ASSERT_TRUE(shard.Push(gradient.request).ok());
    }
  };
  const auto undisturbed = Make(1, true);
  for (int64_t step = 0; step < 3; ++step) {
    push(*undisturbed, step, {0, 1, 2, 3, 4, 5, 6, 7});
  }
  const auto first = Make(1, true);
  for (const std::vector<uint32_t>& four : {std::vector<uint32_t>{0, 4}, {5}, {2, 6}, {3}}) {
    push(*first, 0, four);  // the second died before lane 1, the last before lane 7
  }
  EXPECT_EQ(first->version(), 0);
  push(*first, 0, {7, 3});  // by the remaining three, which do not know what was pushed
  push(*first, 0, {1, 5});
  EXPECT_EQ(first->version(), 1);
  for (const std::vector<uint32_t>& three : {std::vector<uint32_t>{0, 3}, {1, 4}}) {
    push(*first, 1, three);
  }
  const auto second = Make(1, true);
  ASSERT_TRUE(second->Load(0, first->Save(0).value()).ok());
  for (const std::vector<uint32_t>& five :
       {std::vector<uint32_t>{0, 5}, {1, 6}, {2, 7}, {3}, {4}}) {
    push(*second, 1, five);
  }
  EXPECT_EQ(second->version(), 2);
  push(*second, 2, {7, 6, 5, 4, 3, 2, 1, 0});
  EXPECT_EQ(second->version(), 3);
  EXPECT_EQ(Bits(*second), Bits(*undisturbed));
}

TEST_F(ParameterShardTest, AStepWaitsForTheOneBefore) {
  const auto shard = Make(1, true);
  ASSERT_TRUE(shard->Push(Gradient(Lane(0, 2, 0), 1, {3}).request).ok());
  std::vector<int64_t> ids{3};
  std::vector<float> row(network_->tables()[0].dimension);
  const uint32_t partition = 0;
  int64_t version = 0;
  PullRequest pull;
  pull.partitions = std::span(&partition, 1);
  pull.batch = Lane(0, 2, 1);
  pull.tables.assign(network_->tables().size(), ids);
  PullTarget target;
  target.versions = std::span(&version, 1);
  target.tables.assign(network_->tables().size(), row.data());
  EXPECT_EQ(shard->Pull(pull, target, 0.001).code(), Code::kDeadlineExceeded);
  ASSERT_TRUE(shard->Push(Gradient(Lane(1, 2, 0), 1, {3}).request).ok());
  EXPECT_TRUE(shard->Pull(pull, target, 0.001).ok());
}

// A server that is one step ahead of another still has the values that a lane's new holder needs.
TEST_F(ParameterShardTest, ValuesFromBeforeTheLastStepAreKept) {
  const auto shard = Make(1, true);
  const std::vector<float> before = Row(*shard, 3, Lane(0, 2, 0), Purpose::kStep);
  for (uint32_t lane : {0U, 1U}) {
    ASSERT_TRUE(shard->Push(Gradient(Lane(lane, 2, 0), 1, {3}).request).ok());
  }
  int64_t version = -1;
  EXPECT_EQ(Row(*shard, 3, Lane(1, 2, 0), Purpose::kStep, &version), before);
  EXPECT_EQ(version, 0);
  EXPECT_NE(Row(*shard, 3, Lane(1, 2, 1), Purpose::kStep, &version), before);
  EXPECT_EQ(version, 1);
}

TEST_F(ParameterShardTest, LanesMayEndAtDifferentSteps) {
  const auto shard = Make(1, true);
  const auto end = [&](uint32_t lane, int64_t step) {
    const uint32_t partition = 0;
    PushRequest request;
    request.partitions = std::span(&partition, 1);
    request.batch = Lane(lane, 2, step);
    request.end = true;
    return shard->Push(request);
  };
  ASSERT_TRUE(shard->Push(Gradient(Lane(0, 2, 0), 1, {3}).request).ok());
  ASSERT_TRUE(end(0, 1).ok()) << "its last step may still be open";
  ASSERT_TRUE(shard->Push(Gradient(Lane(1, 2, 0), 1, {3}).request).ok());
  EXPECT_EQ(shard->version(), 1);
  ASSERT_TRUE(shard->Push(Gradient(Lane(1, 2, 1), 1, {3}).request).ok());
  EXPECT_EQ(shard->version(), 2) << "the step closes over the lane that is left";
  ASSERT_TRUE(end(1, 2).ok());
  ASSERT_TRUE(shard->Push(Gradient(Lane(0, 1, 0, 1), 1, {3}).request).ok());
  EXPECT_EQ(shard->version(), 3) << "the next round has one lane";
}

}  // namespace
}  // namespace sluice::elastic
