#include "models/features/time_cell.h"

#include <gtest/gtest.h>

#include "base/value.h"
#include "models/features/cell_format.h"

namespace sluice::models {
namespace {

std::string Read(std::string_view text, TimeFormat format) {
  const auto micros = ParseTime(text, format);
  return micros ? FormatTimestamp(*micros) : "none";
}

TEST(TimeCell, EverySpelling) {
  const std::string day = FormatTimestamp(*ParseTimestamp("1995-01-31"));
  EXPECT_EQ(Read("1995/1/31", TimeFormat::kYearFirst), day);
  EXPECT_EQ(Read("1995.01.31", TimeFormat::kYearFirst), day);
  EXPECT_EQ(Read("1/31/1995", TimeFormat::kMonthFirst), day);
  EXPECT_EQ(Read("01-31-95", TimeFormat::kMonthFirst), day);
  EXPECT_EQ(Read(" 31.01.1995 ", TimeFormat::kDayFirst), day);
  EXPECT_EQ(Read("31-Jan-1995", TimeFormat::kMonthName), day);
  EXPECT_EQ(Read("31 January 95", TimeFormat::kMonthName), day);
  EXPECT_EQ(Read("Jan 31, 1995", TimeFormat::kMonthName), day);
  EXPECT_EQ(Read("Tue, 31 Jan 1995", TimeFormat::kMonthName), day);
  EXPECT_EQ(Read("19950131", TimeFormat::kCompact), day);
  const std::string month = FormatTimestamp(*ParseTimestamp("1995-03-01"));
  EXPECT_EQ(Read("1995-03", TimeFormat::kMonth), month);
  EXPECT_EQ(Read(" 1995/3 ", TimeFormat::kMonth), month);
  EXPECT_EQ(Read("791510400", TimeFormat::kSeconds), day);
  EXPECT_EQ(Read("791510400000", TimeFormat::kMillis), day);
}

TEST(TimeCell, Clocks) {
  const std::string noon = FormatTimestamp(*ParseTimestamp("2020-12-31 12:05:00"));
  EXPECT_EQ(Read("31/12/2020 12:05", TimeFormat::kDayFirst), noon);
  EXPECT_EQ(Read("12/31/2020 12:05:00 PM", TimeFormat::kMonthFirst), noon);
  EXPECT_EQ(Read("12/31/20, 2:05 pm +0200", TimeFormat::kMonthFirst), noon);
  EXPECT_EQ(Read("31 Dec 2020 12:05:00.0Z", TimeFormat::kMonthName), noon);
  EXPECT_EQ(Read("12/31/2020 12:05 AM", TimeFormat::kMonthFirst),
            FormatTimestamp(*ParseTimestamp("2020-12-31 00:05:00")));
}

TEST(TimeCell, NoTimes) {
  for (const char* text : {"", "31/13/2020", "0/1/2020", "1/2/3", "1/2", "1/2/20200", "1.2-2020",
                           "31/12/2020 25:00", "31/12/2020 13:00 PM", "31/12/2020 x"}) {
    EXPECT_EQ(Read(text, TimeFormat::kDayFirst), "none") << text;
  }
  for (const char* text : {"31-Foo-1995", "Jan 1995", "mar", "32 Mar 1995"}) {
    EXPECT_EQ(Read(text, TimeFormat::kMonthName), "none") << text;
  }
  for (const char* text : {"1995-13", "1995-0", "1995", "95-03", "1995-03-01", "1995-3 x"}) {
    EXPECT_EQ(Read(text, TimeFormat::kMonth), "none") << text;
  }
  EXPECT_EQ(Read("20200230", TimeFormat::kCompact), "none");
  EXPECT_EQ(Read("1e300", TimeFormat::kSeconds), "none");
  EXPECT_EQ(Read("nan", TimeFormat::kMillis), "none");
}

TEST(TimeCell, Measures) {
  const int64_t time = *ParseTimestamp("2020-03-01 06:00:00");
  EXPECT_DOUBLE_EQ(MeasureTime(time, TimeMeasure::kDays), 18322.25);
  EXPECT_DOUBLE_EQ(MeasureTime(time, TimeMeasure::kYear), 2020);
  EXPECT_DOUBLE_EQ(MeasureTime(time, TimeMeasure::kDayOfYear), 61);
  EXPECT_NEAR(MeasureTime(time, TimeMeasure::kDaySine), 1, 1e-12);
  EXPECT_NEAR(MeasureTime(time, TimeMeasure::kDayCosine), 0, 1e-12);
}

TEST(TimeCell, NamesOfFormats) {
  for (const TimeFormat format :
       {TimeFormat::kYearFirst, TimeFormat::kMonthFirst, TimeFormat::kDayFirst, TimeFormat::kMonth,
        TimeFormat::kMonthName, TimeFormat::kCompact, TimeFormat::kSeconds, TimeFormat::kMillis}) {
    EXPECT_EQ(FindTimeFormat(TimeFormatName(format)), format);
  }
  EXPECT_EQ(FindTimeFormat(""), TimeFormat::kIso);
  EXPECT_FALSE(FindTimeFormat("dym").has_value());
  EXPECT_FALSE(FindTimeMeasure("years").has_value());
}

}  // namespace
}  // namespace sluice::models
