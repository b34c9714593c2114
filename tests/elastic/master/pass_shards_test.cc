#include "elastic/master/pass_shards.h"

#include <gtest/gtest.h>

#include "tests/elastic/queue/queue_steps.h"

namespace sluice::elastic {
namespace {

constexpr Incarnation kOne{1}, kTwo{2};

TEST(PassShards, AWorkerTakesItsOwnThenThoseOfNobody) {
  PassShards shards;
  shards.BeginPass(At(0));
  shards.Did(kOne, ShardId(0), At(0.01));
  EXPECT_EQ(shards.Cost(kOne, ShardId(0), At(1)), PassShards::kOwn);
  EXPECT_EQ(shards.Cost(kOne, ShardId(1), At(1)), PassShards::kNobodys);
  shards.Lose(kOne);
  EXPECT_EQ(shards.Cost(kTwo, ShardId(0), At(1)), PassShards::kNobodys);
}

TEST(PassShards, OneThatJoinsGetsShardsUntilBothHaveAboutAsMany) {
  PassShards shards;
  shards.BeginPass(At(0));
  for (const int64_t shard : {0, 1, 2, 3}) {
    shards.Did(kOne, ShardId(shard), At(0.1));
  }
  EXPECT_EQ(shards.Cost(kTwo, ShardId(3), At(0.1)), PassShards::kAnothers);
  shards.Did(kTwo, ShardId(3), At(0.2));
  EXPECT_EQ(shards.Cost(kTwo, ShardId(2), At(0.2)), PassShards::kAnothers);
  shards.Did(kTwo, ShardId(2), At(0.3));
  EXPECT_EQ(shards.Cost(kTwo, ShardId(1), At(0.3)), std::nullopt);
  EXPECT_EQ(shards.Cost(kOne, ShardId(2), At(0.3)), std::nullopt);
}

TEST(PassShards, OneThatIsLateIsHelped) {
  PassShards shards;
  shards.BeginPass(At(0));
  shards.Did(kOne, ShardId(0), At(0.5));
  shards.Did(kTwo, ShardId(1), At(0.5));
  shards.BeginPass(At(10));
  shards.Did(kOne, ShardId(0), At(10.5));
  EXPECT_EQ(shards.Cost(kOne, ShardId(1), At(12)), std::nullopt);
  EXPECT_EQ(shards.Cost(kOne, ShardId(1), At(13)), PassShards::kAnothers);
}

}  // namespace
}  // namespace sluice::elastic
