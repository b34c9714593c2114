#include "models/trees/histogram/value_counts.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace sluice::models::histogram {
namespace {

ValueCounts CountsOf(const std::vector<float>& values, size_t first, size_t step) {
  ValueCounts counts;
  for (size_t i = first; i < values.size(); i += step) {
    counts.Add(values[i]);
  }
  return counts;
}

std::vector<float> Normals(size_t count) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(10, 4);
  std::vector<float> values(count);
  for (float& value : values) {
    value = normal(random);
  }
  return values;
}

TEST(ValueCountsTest, FewNumbersAreToldApart) {
  const float least = std::numeric_limits<float>::denorm_min();
  const float most = std::numeric_limits<float>::max();
  const std::vector<float> values = {2, -1, 0, -0.0F, 2, least, -most, std::nextafter(2.0F, 3.0F)};
  const ValueCounts counts = CountsOf(values, 0, 1);
  EXPECT_EQ(counts.Cells(), (std::vector<ValueCounts::Cell>{{-most, -most, 1},
                                                            {-1, -1, 1},
                                                            {0, 0, 2},
                                                            {least, least, 1},
                                                            {2, 2, 2},
                                                            {values[7], values[7], 1}}));
}

TEST(ValueCountsTest, ManyNumbersShareCellsAndNoneIsLost) {
  const std::vector<float> values = Normals(100'000);
  const std::vector<ValueCounts::Cell> cells = CountsOf(values, 0, 1).Cells();
  EXPECT_LE(cells.size(), ValueCounts::kMostValues);
  EXPECT_GT(cells.size(), ValueCounts::kMostValues / 4);
  uint64_t all = 0, largest = 0;
  for (size_t i = 0; i < cells.size(); ++i) {
    all += cells[i].count;
    largest = std::max(largest, cells[i].count);
    EXPECT_LE(cells[i].least, cells[i].most);
    if (i > 0) {
      EXPECT_LT(cells[i - 1].most, cells[i].least);
    }
  }
  EXPECT_EQ(all, values.size());
  EXPECT_LT(largest, values.size() / 255) << "a bin of 255 has several cells";
}

TEST(ValueCountsTest, NeitherTheOrderNorTheGroupsOfRowsMatter) {
  for (const size_t rows : {size_t{5'000}, size_t{9'000}, size_t{60'000}}) {
    std::vector<float> values = Normals(rows);
    for (size_t i = 0; i < rows; i += 3) {
      values[i] = std::round(values[i]);
    }
    const std::vector<ValueCounts::Cell> whole = CountsOf(values, 0, 1).Cells();
    ValueCounts a = CountsOf(values, 0, 3), b = CountsOf(values, 1, 3), c = CountsOf(values, 2, 3);
    ValueCounts left = a;  // (a + b) + c
    left.Merge(b);
    left.Merge(c);
    EXPECT_EQ(left.Cells(), whole);
    c.Merge(a);  // b + (c + a)
    b.Merge(c);
    EXPECT_EQ(b.Cells(), whole);
    ValueCounts none;
    none.Merge(b);
    none.Merge(ValueCounts());
    EXPECT_EQ(none.Cells(), whole);
  }
}

}  // namespace
}  // namespace sluice::models::histogram
