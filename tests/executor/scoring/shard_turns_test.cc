#include "executor/scoring/shard_turns.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace sluice::executor {
namespace {

using elastic::ShardId;

TEST(ShardTurnsTest, ShardsAreTakenInOrderAndOnce) {
  ShardTurns turns(2);
  EXPECT_EQ(turns.Take(), ShardId(0));
  EXPECT_EQ(turns.Take(), ShardId(1));
  EXPECT_EQ(turns.Take(), std::nullopt);
}

TEST(ShardTurnsTest, AShardWaitsForThoseBefore) {
  ShardTurns turns(3);
  std::vector<int> delivered;  // by the one whose turn it is
  {
    std::vector<std::jthread> workers;
    for (const int shard : {2, 1, 0}) {
      workers.emplace_back([&turns, &delivered, shard] {
        ASSERT_TRUE(turns.Await(ShardId(shard)));
        EXPECT_TRUE(turns.IsTurnOf(ShardId(shard)));
        delivered.push_back(shard);
        turns.Pass(ShardId(shard));
      });
    }
  }
  EXPECT_EQ(delivered, (std::vector<int>{0, 1, 2}));
}

TEST(ShardTurnsTest, NobodyWaitsAfterTheEnd) {
  ShardTurns turns(2);
  std::jthread waiting([&turns] { EXPECT_FALSE(turns.Await(ShardId(1))); });
  turns.End();
  waiting.join();
  EXPECT_EQ(turns.Take(), std::nullopt);
  EXPECT_FALSE(turns.IsTurnOf(ShardId(0)));
}

}  // namespace
}  // namespace sluice::executor
