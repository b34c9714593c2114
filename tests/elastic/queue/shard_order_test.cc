#include "elastic/queue/shard_order.h"

#include <gtest/gtest.h>

#include <set>

namespace sluice::elastic {
namespace {

TEST(ShardOrder, IsAPermutationForEverySize) {
  for (const int64_t size : {1, 2, 3, 4, 5, 16, 17, 100, 1'000, 4'097}) {
    for (Epoch epoch(1); epoch <= Epoch(3); ++epoch) {
      const ShardOrder order(size, 42, epoch, true);
      std::set<ShardId> seen;
      for (ShardPosition position; position < ShardPosition(size); ++position) {
        const ShardId shard = order.At(position);
        EXPECT_GE(shard, ShardId(0));
        EXPECT_LT(shard, ShardId(size));
        seen.insert(shard);
      }
      EXPECT_EQ(static_cast<int64_t>(seen.size()), size);
    }
  }
}

TEST(ShardOrder, DependsOnSeedAndEpochOnly) {
  int same_epoch = 0, same_seed = 0;
  for (ShardPosition position; position < ShardPosition(1'000); ++position) {
    EXPECT_EQ(ShardOrder(1'000, 1, Epoch(1), true).At(position),
              ShardOrder(1'000, 1, Epoch(1), true).At(position));
    same_epoch += ShardOrder(1'000, 1, Epoch(1), true).At(position) ==
                          ShardOrder(1'000, 2, Epoch(1), true).At(position)
                      ? 1
                      : 0;
    same_seed += ShardOrder(1'000, 1, Epoch(1), true).At(position) ==
                         ShardOrder(1'000, 1, Epoch(2), true).At(position)
                     ? 1
                     : 0;
  }
  EXPECT_LT(same_epoch, 20);
  EXPECT_LT(same_seed, 20);
}

TEST(ShardOrder, UnshuffledIsAsItIs) {
  const ShardOrder order(10, 42, Epoch(3), false);
  for (ShardPosition position; position < ShardPosition(10); ++position) {
    EXPECT_EQ(order.At(position), ShardId(position.value()));
  }
}

TEST(ShardOrder, HugeDatasetsCostNothing) {
  const ShardOrder order(int64_t{3'000'000'000}, 42, Epoch(1), true);
  for (const int64_t position : {int64_t{0}, int64_t{1'500'000'000}, int64_t{2'999'999'999}}) {
    EXPECT_GE(order.At(ShardPosition(position)), ShardId(0));
    EXPECT_LT(order.At(ShardPosition(position)), ShardId(3'000'000'000));
  }
}

}  // namespace
}  // namespace sluice::elastic
