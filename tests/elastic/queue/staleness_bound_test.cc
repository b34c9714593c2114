#include "elastic/queue/staleness_bound.h"

#include <gtest/gtest.h>

namespace sluice::elastic {
namespace {

constexpr Incarnation kFast = Incarnation(1), kSlow = Incarnation(2), kNew = Incarnation(3);

TEST(StalenessBound, P8_TheFastWaitForTheSlow) {
  StalenessBound bound(3);
  EXPECT_TRUE(bound.MayBegin(kFast, 0));
  EXPECT_TRUE(bound.MayBegin(kSlow, 0));
  EXPECT_TRUE(bound.MayBegin(kFast, 3));
  EXPECT_TRUE(bound.MayBegin(kSlow, 6));
  EXPECT_FALSE(bound.MayBegin(kFast, 10)) << "four ahead";
  EXPECT_TRUE(bound.MayBegin(kSlow, 7));
  EXPECT_TRUE(bound.MayBegin(kFast, 10)) << "three ahead";
  EXPECT_FALSE(bound.MayBegin(kFast, 11));
  EXPECT_EQ(bound.widest(), 3);
}

TEST(StalenessBound, ZeroIsLockstep) {
  StalenessBound bound(0);
  EXPECT_TRUE(bound.MayBegin(kFast, 0));
  EXPECT_TRUE(bound.MayBegin(kSlow, 0));
  EXPECT_FALSE(bound.MayBegin(kFast, 1));
  EXPECT_TRUE(bound.MayBegin(kSlow, 1));
  EXPECT_TRUE(bound.MayBegin(kFast, 1));
}

TEST(StalenessBound, P8_TheLostAndTheIdleAreNotWaitedFor) {
  StalenessBound bound(1);
  EXPECT_TRUE(bound.MayBegin(kSlow, 0));
  EXPECT_TRUE(bound.MayBegin(kFast, 0));
  EXPECT_FALSE(bound.MayBegin(kFast, 2));
  bound.Rest(kSlow);
  EXPECT_TRUE(bound.MayBegin(kFast, 2));
  EXPECT_TRUE(bound.MayBegin(kFast, 100));
}

TEST(StalenessBound, ANewcomerBeginsWhereTheSlowestIs) {
  StalenessBound bound(2);
  EXPECT_TRUE(bound.MayBegin(kFast, 0));
  EXPECT_TRUE(bound.MayBegin(kFast, 50));
  EXPECT_TRUE(bound.MayBegin(kNew, 0));
  EXPECT_TRUE(bound.MayBegin(kFast, 52));
  EXPECT_FALSE(bound.MayBegin(kFast, 53));
  EXPECT_TRUE(bound.MayBegin(kNew, 1)) << "its own count goes on from there";
  EXPECT_TRUE(bound.MayBegin(kFast, 53));
  bound.Rest(kNew);
  EXPECT_TRUE(bound.MayBegin(kFast, 60));
  EXPECT_TRUE(bound.MayBegin(kNew, 1)) << "back again, with the count of before";
  EXPECT_FALSE(bound.MayBegin(kFast, 63));
}

// The final report shows what workers have done, whatever they were allowed.
TEST(StalenessBound, P8_AWorkerThatDoesNotWaitIsTold) {
  StalenessBound bound(1);
  EXPECT_TRUE(bound.MayBegin(kFast, 0));
  EXPECT_TRUE(bound.MayBegin(kSlow, 0));
  EXPECT_TRUE(bound.MayBegin(kFast, 1));
  EXPECT_FALSE(bound.MayBegin(kFast, 2));
  EXPECT_EQ(bound.widest(), 1);
  EXPECT_FALSE(bound.MayBegin(kFast, 3)) << "it has begun one all the same";
  EXPECT_EQ(bound.widest(), 2);
}

TEST(StalenessBound, AMessageThatComesLateTurnsNoClockBack) {
  StalenessBound bound(0);
  EXPECT_TRUE(bound.MayBegin(kFast, 0));
  EXPECT_TRUE(bound.MayBegin(kSlow, 0));
  EXPECT_FALSE(bound.MayBegin(kSlow, 1));
  EXPECT_FALSE(bound.MayBegin(kSlow, 0));
  EXPECT_TRUE(bound.MayBegin(kFast, 1));
}

}  // namespace
}  // namespace sluice::elastic
