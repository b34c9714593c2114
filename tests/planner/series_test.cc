#include "planner/series.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace sluice::planner {
namespace {

using Names = std::vector<std::string>;

// The calendar of a table with whole numbers: `cell(row, column)`.
Series CalendarOf(const Names& names, int64_t rows,
                  const std::function<int64_t(int64_t, size_t)>& cell) {
  Schema schema;
  catalog::SelectStatistics statistics;
  statistics.rows = rows;
  for (const std::string& name : names) {
    ColumnInfo& column = schema.columns.emplace_back();
    column.name = name;
    column.type = DataType::kInt64;
    catalog::ColumnStatistics& own = statistics.columns.emplace_back();
    own.distinct = static_cast<double>(rows);
    own.has_range = true;
    own.min = static_cast<double>(cell(0, statistics.columns.size() - 1));
    own.max = static_cast<double>(cell(rows - 1, statistics.columns.size() - 1));
  }
  for (int64_t row = 0; row < rows; ++row) {
    std::vector<Value>& values = statistics.sample.emplace_back();
    for (size_t column = 0; column < names.size(); ++column) {
      values.emplace_back(cell(row, column));
    }
  }
  return FindCalendar(schema, std::vector<bool>(names.size(), true), statistics);
}

// One row an hour; of the 31 days of each month. `names`: year, month, day and hour.
int64_t Hourly(int64_t row, size_t column) {
  const int64_t parts[] = {2019 + row / 24 / 31 / 12, 1 + row / 24 / 31 % 12, 1 + row / 24 % 31,
                           row % 24};
  return parts[column];
}

TEST(Series, IsFoundInTheColumnsOfACalendarTogether) {
  EXPECT_EQ(CalendarOf({"Year", "mnth", "day_of_month", "hr"}, 9'000, Hourly).columns,
            (Names{"Year", "mnth", "day_of_month", "hr"}));
  // In any order of the columns.
  const Series series = CalendarOf({"hour", "day", "month", "year"}, 9'000,
                                   [](auto row, auto i) { return Hourly(row, 3 - i); });
  EXPECT_EQ(series.columns, (Names{"year", "month", "day", "hour"}));
  EXPECT_EQ(series.order, "year, month, day, hour");
}

TEST(Series, ARowNumberTellsRowsOfOneTimeApart) {
  const auto with_number = [](int64_t row, size_t column) {
    return column == 0 ? 7 + row : Hourly(row, column - 1);
  };
  const Series series = CalendarOf({"instant", "yr", "mnth"}, 9'000, with_number);
  EXPECT_EQ(series.columns, Names{"instant"});
  EXPECT_EQ(series.order, "yr, mnth and instant");
}

// A fifth of the rows is missing, as where some were kept for a test.
TEST(Series, OfWhichRowsInBetweenAreMissingIsNone) {
  const auto sampled = [](int64_t row, size_t column) {
    const int64_t of_all = row + row / 4;
    return column == 0 ? of_all : Hourly(of_all, column - 1);
  };
  EXPECT_TRUE(CalendarOf({"instant", "yr", "mnth"}, 7'200, sampled).empty());
  EXPECT_TRUE(CalendarOf({"instant", "year", "month", "day", "hour"}, 7'200, sampled).empty());
}

TEST(Series, RowsOfOneTimeAreLateTogether) {
  const auto twice = [](int64_t row, size_t column) { return Hourly(row / 2, column); };
  EXPECT_EQ(CalendarOf({"year", "month", "day"}, 4'000, twice).columns,
            (Names{"year", "month", "day"}));
}

TEST(Series, IsNoneOfWhatTheRowsAreNotOrderedBy) {
  const auto mixed = [](int64_t row, size_t column) { return Hourly(row * 7919 % 9'000, column); };
  EXPECT_TRUE(CalendarOf({"year", "month", "day", "hour"}, 9'000, mixed).empty());
  // One part alone may be any group; a few groups as well.
  EXPECT_TRUE(CalendarOf({"year", "b", "c"}, 9'000, Hourly).empty());
  EXPECT_TRUE(CalendarOf({"year", "month"}, 9'000, Hourly).empty());
  // Too few rows, and numbers that are no months.
  EXPECT_TRUE(CalendarOf({"year", "month", "day", "hour"}, 40, Hourly).empty());
  EXPECT_TRUE(CalendarOf({"year", "month"}, 9'000, [](int64_t row, size_t column) {
                return column == 0 ? 2000 + row / 100 : 20 + row % 100;
              }).empty());
}

}  // namespace
}  // namespace sluice::planner
