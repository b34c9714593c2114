#include "base/duration.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(DurationTest, ReadsNumbersWithUnits) {
  EXPECT_EQ(ReadMillis("5", 1), 5);
  EXPECT_EQ(ReadMillis("5", kMillisOfSecond), 5'000);
  EXPECT_EQ(ReadMillis("0.5 s", 1), 500);
  EXPECT_EQ(ReadMillis("10min", 1), 600'000);
  EXPECT_EQ(ReadMillis("2  h", 1), 7'200'000);
  EXPECT_EQ(ReadMillis("1d", 1), kMillisOfDay);
  EXPECT_EQ(ReadMillis("0", 1), 0);
}

TEST(DurationTest, RefusesWhatIsNoDuration) {
  for (const char* text :
       {"", " ", "s", "5 m", "5 S", "-1", "1e3", "5 s s", "nan", "inf", "1000000000000000000 s"}) {
    EXPECT_EQ(ReadMillis(text, 1), std::nullopt) << text;
  }
}

TEST(DurationTest, TextsAreReadAsTheSameDuration) {
  EXPECT_EQ(MillisText(500), "500ms");
  EXPECT_EQ(MillisText(120'000), "2min");
  EXPECT_EQ(MillisText(kMillisOfDay), "1d");
  for (const int64_t millis : {int64_t{1}, int64_t{1'500}, int64_t{90'000}, 3 * kMillisOfDay}) {
    EXPECT_EQ(ReadMillis(MillisText(millis), 1), millis);
  }
}

}  // namespace
}  // namespace sluice
