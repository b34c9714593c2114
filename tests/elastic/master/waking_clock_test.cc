#include "elastic/master/waking_clock.h"

#include <gtest/gtest.h>

namespace sluice::elastic {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class ManualClock final : public Clock {
 public:
  TimePoint Now() const override { return now; }
  TimePoint now{seconds(100)};
};

TEST(WakingClock, PassesWithTheClockWhileItIsLookedAt) {
  ManualClock clock;
  const WakingClock waking(clock);
  const TimePoint begin = waking.Now();
  for (int look = 1; look <= 50; ++look) {
    clock.now += milliseconds(100);
    EXPECT_EQ(waking.Now() - begin, look * milliseconds(100));
  }
}

TEST(WakingClock, AWhileInWhichNobodyLookedIsOneStep) {
  ManualClock clock;
  const WakingClock waking(clock);
  const TimePoint begin = waking.Now();
  clock.now += seconds(3600);  // stopped
  EXPECT_EQ(waking.Now() - begin, seconds(1));
  EXPECT_EQ(waking.Now() - begin, seconds(1));
  clock.now += milliseconds(100);
  EXPECT_EQ(waking.Now() - begin, milliseconds(1100));
}

}  // namespace
}  // namespace sluice::elastic
