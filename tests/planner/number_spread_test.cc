#include "planner/number_spread.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/value.h"
#include "catalog/data_source.h"
#include "models/model.pb.h"

namespace sluice::planner {
namespace {

models::InputColumn Describe(const std::vector<Value>& cells, DataType type = DataType::kDouble) {
  catalog::SelectStatistics statistics;
  statistics.columns.resize(1);
  statistics.columns[0].has_range = true;
  statistics.columns[0].min = -1;
  statistics.columns[0].max = 1000;
  statistics.columns[0].mean = 7;
  for (const Value& cell : cells) {
    statistics.sample.push_back({cell});
  }
  models::InputColumn input;
  input.set_type(static_cast<int32_t>(type));
  DescribeSpread(statistics, 0, &input);
  return input;
}

TEST(NumberSpread, TenthsOfTheSample) {
  std::vector<Value> cells;
  for (int64_t i = 99; i >= 0; --i) {
    cells.emplace_back(i);
  }
  const models::NumberSpread spread = Describe(cells).spread();
  EXPECT_EQ(spread.lowest(), -1);
  EXPECT_EQ(spread.highest(), 1000);
  EXPECT_EQ(spread.mean(), 7);
  EXPECT_EQ(spread.sampled(), 100);
  ASSERT_EQ(spread.bounds_size(), 9);
  ASSERT_EQ(spread.shares_size(), 9);
  EXPECT_EQ(spread.bounds(0), 10);
  EXPECT_DOUBLE_EQ(spread.shares(0), 0.11);
  EXPECT_EQ(spread.bounds(8), 90);
  EXPECT_DOUBLE_EQ(spread.shares(8), 0.91);
}

// A share counts all equal numbers, and no bound stands twice.
TEST(NumberSpread, FrequentNumbersAreOneBound) {
  std::vector<Value> cells(63, Value(0.0));
  for (int i = 1; i <= 37; ++i) {
    cells.emplace_back(static_cast<double>(i));
  }
  const models::NumberSpread spread = Describe(cells).spread();
  ASSERT_EQ(spread.bounds_size(), 4);
  EXPECT_EQ(spread.bounds(0), 0);
  EXPECT_DOUBLE_EQ(spread.shares(0), 0.63);
}

TEST(NumberSpread, OneValueAndNoValueHaveNoBounds) {
  EXPECT_EQ(Describe(std::vector<Value>(50, Value(3.0))).spread().bounds_size(), 0);
  const models::NumberSpread none = Describe({Value(), Value(NAN), Value(INFINITY)}).spread();
  EXPECT_EQ(none.sampled(), 0);
  EXPECT_EQ(none.bounds_size(), 0);
}

TEST(NumberSpread, OnlyOfNumbers) {
  EXPECT_TRUE(Describe({Value(true), Value(false)}, DataType::kBool).has_spread());
  EXPECT_FALSE(Describe({Value(int64_t{1})}, DataType::kTimestamp).has_spread());
  EXPECT_FALSE(Describe({Value("1")}, DataType::kText).has_spread());
}

}  // namespace
}  // namespace sluice::planner
