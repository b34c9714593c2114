#include <gtest/gtest.h>

#include <cstdint>

#include "elastic/parameters/lane_tree.h"

namespace sluice::elastic {
namespace {

TEST(LaneSums, KeepsOnlyLargestNodes) {
  LaneSums<float> sums;
  const auto merge = [](float* left, float right) { *left += right; };
  sums.Start(7);
  for (uint32_t lane = 3; lane < 7; ++lane) {
    sums.Add(lane, 1.0F, merge);
  }
  ASSERT_EQ(sums.nodes().size(), 2U);  // lane 3, and the right half: lanes 4 to 6
  EXPECT_EQ(sums.nodes()[0].begin, 3U);
  EXPECT_EQ(sums.nodes()[1].begin, 4U);
  EXPECT_EQ(*sums.nodes()[1].sum, 3.0F);
}

}  // namespace
}  // namespace sluice::elastic
