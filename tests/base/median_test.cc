#include "base/median.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(Median, IsTheMiddleOrTheGreaterOfTwo) {
  EXPECT_EQ(MedianOf(std::vector<int>{7}), 7);
  EXPECT_EQ(MedianOf(std::vector<int>{9, 1, 5}), 5);
  EXPECT_EQ(MedianOf(std::vector<double>{4, 1, 3, 2}), 3);
}

}  // namespace
}  // namespace sluice
