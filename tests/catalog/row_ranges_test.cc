#include "catalog/row_ranges_internal.h"

#include <gmock/gmock.h>

namespace sluice::catalog {
namespace {

RowDensity Even(int64_t keys, double rows) {
  RowDensity density;
  density.Start(0);
  density.Add(keys, rows);
  return density;
}

TEST(RowRanges, EvenCutsCoverEverythingOnce) {
  for (const auto& [keys, rows, per_shard] :
       {std::tuple(1000, 1000.0, 100), std::tuple(7, 1e6, 10), std::tuple(1'000'000, 5.0, 100),
        std::tuple(100, 99.0, 7)}) {
    const auto shards = CutEvenly(Even(keys, rows), per_shard);
    ASSERT_FALSE(shards.empty());
    EXPECT_EQ(shards.front().begin(), 0);
    EXPECT_EQ(shards.back().end(), keys);
    for (size_t i = 1; i < shards.size(); ++i) {
      EXPECT_EQ(shards[i].begin(), shards[i - 1].end());
      EXPECT_LT(shards[i].begin(), shards[i].end());
    }
  }
  EXPECT_EQ(CutEvenly(Even(1000, 1000), 100).size(), 10U);
}

TEST(RowRanges, DenseKeysGetShorterRanges) {
  RowDensity density;
  density.Start(0);
  density.Add(100, 900);  // nine rows a key
  density.Add(1000, 100);
  const auto shards = CutEvenly(density, 500);
  ASSERT_EQ(shards.size(), 2U);
  EXPECT_EQ(shards[0].end(), 55);
}

TEST(RowRanges, SpreadRangesAreDisjointAndReachTheEnd) {
  const auto ranges = SpreadRanges(Even(1'000'000, 1e6), 128, 20'000);
  EXPECT_EQ(ranges.size(), 128U);
  int64_t covered = 0;
  for (size_t i = 0; i < ranges.size(); ++i) {
    covered += ranges[i].second - ranges[i].first;
    if (i > 0) {
      EXPECT_GE(ranges[i].first, ranges[i - 1].second);
    }
  }
  EXPECT_NEAR(static_cast<double>(covered), 20'000, 300);
  EXPECT_GT(ranges.back().first, 980'000);
  EXPECT_EQ(SpreadRanges(Even(50, 100), 128, 20'000).size(), 1U);
}

TEST(RowRanges, BoundsGoToTheLastPlace) {
  EXPECT_EQ(WithBounds("SELECT '{begin}{end}' WHERE k >= {begin} AND k < {end}", "3", "77"),
            "SELECT '{begin}{end}' WHERE k >= 3 AND k < 77");
}

TEST(RowRanges, KeysBecomeShards) {
  const auto shards = CutAtKeys({5, 20, 31}, 99, 25, 10);
  ASSERT_EQ(shards.size(), 3U);
  EXPECT_EQ(shards[1].begin(), 20);
  EXPECT_EQ(shards[1].end(), 31);
  EXPECT_EQ(shards[2].end(), 99);
  EXPECT_EQ(shards[2].estimated_rows(), 5);
  EXPECT_EQ(CutAtKeys({}, 7, 0, 10).size(), 1U);
}

}  // namespace
}  // namespace sluice::catalog
