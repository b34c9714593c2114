#include "k8s/pod_request.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice::k8s {
namespace {

// "hhhlllllhh": the class of each pod.
std::string Classes(double high_share, uint32_t pods, uint32_t shown) {
  std::string classes;
  for (uint32_t i = 0; i < shown; ++i) {
    const std::string_view name = PriorityClassOf({{}, {true, high_share}, pods}, i);
    classes += name == kHighPriorityClass ? 'h' : name == kLowPriorityClass ? 'l' : '?';
  }
  return classes;
}

TEST(PodRequest, AShareOfHighPriorityLiesAtBothEnds) {
  EXPECT_EQ(Classes(0.5, 10, 10), "hhhlllllhh");
  EXPECT_EQ(Classes(0.3, 10, 10), "hhlllllllh");
  EXPECT_EQ(Classes(0.31, 10, 10), "hhllllllhh");
  EXPECT_EQ(Classes(0.01, 3, 3), "hll");
  EXPECT_EQ(Classes(0.5, 1, 1), "h");
  EXPECT_EQ(Classes(1, 4, 4), "hhhh");
  EXPECT_EQ(Classes(0, 4, 4), "llll");
}

TEST(PodRequest, LaterPodsBeginAgain) {
  EXPECT_EQ(Classes(0.5, 4, 8), "hllhhllh");
  EXPECT_EQ(Classes(0.5, 0, 2), "hh");
}

TEST(PodRequest, WithoutAPriorityThereIsNoClass) {
  EXPECT_EQ(PriorityClassOf(RoleRequest(), 0), "");
}

}  // namespace
}  // namespace sluice::k8s
