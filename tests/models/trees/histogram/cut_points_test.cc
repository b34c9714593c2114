#include "models/trees/histogram/cut_points.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace sluice::models::histogram {
namespace {

CutPoints CutsOf(const std::vector<std::vector<float>>& columns, size_t most_bins) {
  std::vector<ValueCounts> counts(columns.size());
  for (size_t c = 0; c < columns.size(); ++c) {
    for (const float value : columns[c]) {
      counts[c].Add(value);
    }
  }
  return CutPoints(counts, most_bins);
}

TEST(CutPointsTest, EachOfFewNumbersHasABin) {
  const float next = std::nextafter(7.0F, 8.0F);
  const CutPoints cuts = CutsOf({{1, 4, 7, next, 4}, {}, {5}}, 255);
  ASSERT_EQ(cuts.columns(), 3u);
  ASSERT_EQ(cuts.bins(0), 4u);
  EXPECT_EQ(cuts.Threshold(0, 0), 2.5F) << "in the middle";
  EXPECT_EQ(cuts.Threshold(0, 1), 5.5F);
  EXPECT_EQ(cuts.Threshold(0, 2), next) << "neighbours are told apart";
  EXPECT_GT(cuts.Threshold(0, 3), next);
  EXPECT_EQ(cuts.BinOf(0, 1), 0u);
  EXPECT_EQ(cuts.BinOf(0, 2.5F), 1u) << "a number goes left if it is below the threshold";
  EXPECT_EQ(cuts.BinOf(0, 7), 2u);
  EXPECT_EQ(cuts.BinOf(0, next), 3u);
  EXPECT_EQ(cuts.BinOf(0, 1e30F), 3u);
  EXPECT_EQ(cuts.BinOf(0, -std::numeric_limits<float>::infinity()), 0u);
  EXPECT_EQ(cuts.BinOf(0, NAN), 4u) << "missing";
  EXPECT_EQ(cuts.bins(1), 1u) << "no number was seen";
  EXPECT_EQ(cuts.BinOf(1, NAN), 1u);
  EXPECT_EQ(cuts.bins(2), 1u);
  EXPECT_EQ(cuts.all_bins(), 5u + 2 + 2);
  EXPECT_EQ(cuts.first(2), 7u);
}

TEST(CutPointsTest, BinsOfManyNumbersAreOfEqualCounts) {
  std::vector<float> values;
  for (int i = 0; i < 10'000; ++i) {
    values.push_back(static_cast<float>(i * i));
  }
  values.insert(values.end(), 5'000, 1234.5F);  // a third of all rows
  const CutPoints cuts = CutsOf({values}, 100);
  ASSERT_GT(cuts.bins(0), 95u);
  ASSERT_LE(cuts.bins(0), 100u);
  std::vector<int> held(cuts.bins(0));
  for (const float value : values) {
    const uint32_t bin = cuts.BinOf(0, value);
    ASSERT_LT(value, cuts.Threshold(0, bin));
    ASSERT_TRUE(bin == 0 || value >= cuts.Threshold(0, bin - 1));
    ++held[bin];
  }
  const uint32_t own = cuts.BinOf(0, 1234.5F);
  EXPECT_EQ(held[own], 5'000) << "a frequent number has a bin of its own";
  for (uint32_t bin = 0; bin < cuts.bins(0); ++bin) {
    if (bin != own && bin + 1 != own) {
      EXPECT_NEAR(held[bin], 100, 30) << bin;
    }
  }
}

TEST(CutPointsTest, CategoriesHaveABinEach) {
  std::vector<ValueCounts> counts(3);
  for (const float id : {7.0F, 0.0F, 3.0F, 7.0F}) {
    counts[0].Add(id);
    counts[1].Add(id * 1'000);
  }
  for (int id = 0; id < 300; ++id) {
    counts[2].Add(static_cast<float>(id));
  }
  const CutPoints cuts(counts, 255, std::vector<size_t>{0, 1, 2});
  ASSERT_TRUE(cuts.by_category(0));
  ASSERT_EQ(cuts.bins(0), 3u);
  EXPECT_EQ(cuts.Category(0, 2), 7);
  EXPECT_EQ(cuts.BinOf(0, 3), 1u);
  EXPECT_EQ(cuts.BinOf(0, 4), 3u) << "unseen: as if missing";
  EXPECT_EQ(cuts.BinOf(0, 100), 3u);
  EXPECT_EQ(cuts.BinOf(0, NAN), 3u);
  EXPECT_FALSE(cuts.by_category(1)) << "an id is too large for the file";
  EXPECT_FALSE(cuts.by_category(2)) << "more than bins: numbers";
  EXPECT_LE(cuts.bins(2), 255u);
}

TEST(CutPointsTest, NoColumnHasMoreBinsThanAsked) {
  for (const size_t most : {2, 3, 7, 255, 1000}) {
    std::vector<float> values;
    for (int i = 0; i < 3'000; ++i) {
      values.push_back(static_cast<float>(i % 1'200));
      values.push_back(static_cast<float>(i % 5 * 100));
    }
    const CutPoints cuts = CutsOf({values}, most);
    EXPECT_LE(cuts.bins(0), most);
    EXPECT_GE(cuts.bins(0), most / 2 + 1);
    EXPECT_EQ(cuts.most_bins(), cuts.bins(0));
  }
}

}  // namespace
}  // namespace sluice::models::histogram
