#include "base/value.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/row_batch.h"

namespace sluice {
namespace {

TEST(FormatValue, IsTheOneWayACellBecomesText) {
  EXPECT_EQ(FormatValue(std::monostate{}, DataType::kInt64), "");
  EXPECT_EQ(FormatValue(true, DataType::kBool), "t");
  EXPECT_EQ(FormatValue(int64_t{-7}, DataType::kInt64), "-7");
  EXPECT_EQ(FormatValue(0.1, DataType::kDouble), "0.1");
  EXPECT_EQ(FormatValue(std::string("x"), DataType::kText), "x");
}

TEST(FormatDouble, SpellsTheSpecialOnesAsPostgresqlDoes) {
  EXPECT_EQ(FormatDouble(std::numeric_limits<double>::quiet_NaN()), "NaN");
  EXPECT_EQ(FormatDouble(std::numeric_limits<double>::infinity()), "Infinity");
  EXPECT_EQ(FormatDouble(-std::numeric_limits<double>::infinity()), "-Infinity");
}

TEST(FormatTimestamp, GoesOnWhereTheLibrarysYearsEnd) {
  EXPECT_EQ(FormatTimestamp(971890963199999999), "32767-12-31 23:59:59.999999");
  EXPECT_EQ(FormatTimestamp(971890963200000000), "32768-01-01 00:00:00");
}

TEST(FormatTimestamp, HandlesTimesBefore1970) {
  EXPECT_EQ(FormatTimestamp(0), "1970-01-01 00:00:00");
  EXPECT_EQ(FormatTimestamp(-1), "1969-12-31 23:59:59.999999");
  EXPECT_EQ(FormatTimestamp(951782400000000), "2000-02-29 00:00:00");
  EXPECT_EQ(FormatTimestamp(-62135596800000000), "0001-01-01 00:00:00");
}

TEST(FormatTimestamp, HandlesEveryNumber) {
  EXPECT_EQ(FormatTimestamp(std::numeric_limits<int64_t>::max()), "294247-01-10 04:00:54.775807");
  EXPECT_EQ(FormatTimestamp(std::numeric_limits<int64_t>::min()),
            "290309-12-21 19:59:05.224192 BC");
  EXPECT_EQ(FormatTimestamp(-62'135'596'800'000'000), "0001-01-01 00:00:00");
  EXPECT_EQ(FormatTimestamp(-62'135'596'800'000'001), "0001-12-31 23:59:59.999999 BC");
}

TEST(Schema, FindsExactlyThenIgnoringCaseUnlessAmbiguous) {
  const Schema schema{
      {{"Age", DataType::kInt64, ""}, {"age", DataType::kInt64, ""}, {"Sex", DataType::kText, ""}}};
  EXPECT_EQ(schema.Find("age"), 1U);
  EXPECT_EQ(schema.Find("sex"), 2U);
  EXPECT_EQ(schema.Find("AGE"), std::nullopt);
  EXPECT_EQ(schema.Find("none"), std::nullopt);
}

TEST(RowBatch, ResetMakesRoomByType) {
  const Schema schema{{{"a", DataType::kInt64, ""}, {"b", DataType::kText, ""}}};
  RowBatch batch;
  batch.Reset(schema, 3);
  EXPECT_EQ(batch.columns[0].int64s.size(), 3U);
  EXPECT_EQ(batch.columns[1].texts.size(), 3U);
  batch.columns[0].int64s[1] = 5;
  batch.columns[1].null[1] = 1;
  EXPECT_EQ(std::get<int64_t>(batch.columns[0].ValueAt(1)), 5);
  EXPECT_EQ(batch.columns[0].NumberAt(1), 5.0);
  EXPECT_TRUE(IsNull(batch.columns[1].ValueAt(1)));
}

}  // namespace
}  // namespace sluice
