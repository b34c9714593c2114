#include "elastic/fleet/growth_caution.h"

#include <gtest/gtest.h>

#include <chrono>

namespace sluice::elastic {
namespace {

constexpr GrowthWaits kWaits{.shortest = 0.5, .longest = 4, .payback = 10};

TimePoint AtSecond(int seconds) {
  return TimePoint(std::chrono::hours(1)) + std::chrono::seconds(seconds);
}
double WaitAt(const GrowthCaution& caution, int seconds) {
  return WaitBeforeGrowth(caution, kWaits, AtSecond(seconds));
}
// Grows at that second, and loses it again `lasted` seconds later.
GrowthCaution GrownFor(const GrowthCaution& before, int seconds, int lasted) {
  const GrowthCaution grown = CautionAfter(before, 2, 5, false, kWaits, AtSecond(seconds));
  return CautionAfter(grown, 5, 2, false, kWaits, AtSecond(seconds + lasted));
}

TEST(GrowthCaution, EachRegretDoublesTheWait) {
  GrowthCaution caution;
  EXPECT_EQ(WaitAt(caution, 0), 0.5);
  int second = 0;
  for (const double wait : {1.0, 2.0, 4.0, 4.0}) {
    caution = GrownFor(caution, second += 10, 3);
    EXPECT_EQ(WaitAt(caution, second + 3), wait);
  }
}

TEST(GrowthCaution, AGrowthThatHasPaidBackIsNotRegretted) {
  EXPECT_EQ(WaitAt(GrownFor({}, 0, 10), 10), 0.5);
}

TEST(GrowthCaution, OneGrowthIsRegrettedOnce) {
  const GrowthCaution once = GrownFor({}, 0, 1);
  const GrowthCaution less = CautionAfter(once, 2, 1, false, kWaits, AtSecond(2));
  EXPECT_EQ(WaitAt(less, 2), 1);
}

TEST(GrowthCaution, RoomThatStaysForAMinuteIsTrustedAgain) {
  const GrowthCaution caution = GrownFor({}, 0, 3);
  EXPECT_EQ(WaitAt(caution, 62), 1);
  EXPECT_EQ(WaitAt(caution, 63), 0.5);
  // But not if it came and went meanwhile, and the job had learnt to wait for longer.
  const GrowthCaution again = CautionAfter(caution, 2, 2, true, kWaits, AtSecond(50));
  EXPECT_EQ(WaitAt(again, 109), 1);
  EXPECT_EQ(WaitAt(again, 110), 0.5);
  EXPECT_EQ(CautionAfter({}, 2, 2, true, kWaits, AtSecond(50)), GrowthCaution());
}

TEST(GrowthCaution, NobodyWaitsForLongerThanTheLongestWait) {
  EXPECT_EQ(WaitBeforeGrowth({}, {.shortest = 0.5, .longest = 0, .payback = 10}, AtSecond(0)), 0);
}

}  // namespace
}  // namespace sluice::elastic
