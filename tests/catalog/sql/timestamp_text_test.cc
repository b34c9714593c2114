#include "catalog/sql/timestamp_text.h"

#include <gtest/gtest.h>

namespace sluice::catalog {
namespace {

constexpr int64_t kSecond = 1'000'000;

TEST(TimestampText, Forms) {
  EXPECT_EQ(ParseTimestamp("1970-01-01"), 0);
  EXPECT_EQ(ParseTimestamp("1970-01-02 00:00:01"), 86'401 * kSecond);
  EXPECT_EQ(ParseTimestamp("1970-01-01T00:01"), 60 * kSecond);
  EXPECT_EQ(ParseTimestamp("1969-12-31 23:59:59.5"), -kSecond / 2);
  EXPECT_EQ(ParseTimestamp("1970-01-01 00:00:00.123456789"), 123'456);
  EXPECT_EQ(ParseTimestamp("1970-01-01 02:00:00+02"), 0);
  EXPECT_EQ(ParseTimestamp("1970-01-01 00:00:00-05:30"), 19'800 * kSecond);
  EXPECT_EQ(ParseTimestamp("1970-01-01 00:00:00Z"), 0);
  EXPECT_EQ(ParseTimestamp(" 2024-02-29 "), 1'709'164'800 * kSecond);
  EXPECT_EQ(ParseTimestamp("infinity"), kTimestampInfinity);
  EXPECT_LT(*ParseTimestamp("0044-03-15 BC"), *ParseTimestamp("0001-01-01"));
}

TEST(TimestampText, OtherTexts) {
  for (const char* text :
       {"", "x", "1970", "1970-13-01", "2023-02-29", "1970-01-01x", "1970-01-01 1",
        "1970-01-01 25:00", "1970-01-01 00:61", "12", "99999999-01-01"}) {
    EXPECT_FALSE(ParseTimestamp(text).has_value()) << text;
  }
}

TEST(TimestampText, FarAwayTimes) {
  EXPECT_EQ(ParseTimestamp("294247-01-10 04:00:54.775806"), INT64_MAX - 1);
  EXPECT_EQ(ParseTimestamp("40000-02-29"), 1'200'115'958'400 * kSecond);
  EXPECT_EQ(ParseTimestamp("294247-01-11"), kTimestampInfinity);
  EXPECT_EQ(ParseTimestamp("5874897-12-31"), kTimestampInfinity);
  EXPECT_EQ(ParseTimestamp("290310-01-01 BC"), kTimestampMinusInfinity);
  EXPECT_EQ(ParseTimestamp("4714-11-24 00:00:00 BC"), -210'866'803'200 * kSecond);
  EXPECT_FALSE(ParseTimestamp("40001-02-29").has_value());
}

TEST(TimestampText, LiteralsComeBack) {
  for (const int64_t micros :
       {int64_t{0}, int64_t{1'700'000'000'123'456}, -kSecond, kTimestampInfinity,
        kTimestampMinusInfinity, INT64_MAX - 1, INT64_MIN + 1, -62'135'596'800'000'001}) {
    EXPECT_EQ(ParseTimestamp(TimestampLiteral(micros)), micros);
  }
}

}  // namespace
}  // namespace sluice::catalog
