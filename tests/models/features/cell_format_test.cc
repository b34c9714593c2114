#include "models/features/cell_format.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sluice::models {
namespace {

ColumnFormat Vote(std::initializer_list<std::string_view> cells) {
  FormatVote vote;
  for (const std::string_view cell : cells) {
    vote.Add(cell);
  }
  return vote.Decide();
}

TEST(CellFormatTest, CsvNeedsTwoNumbers) {
  for (const char* cell : {"1,2", "1.2,-3,4", " 0.5 , .5 ", "1,2,", "1,2, ", "10,1,398,",
                           "4.9e-05,1E5", "[1,2]", "{1.5,-2}", " [ 1, 2 ] ", "[5]"}) {
    EXPECT_EQ(InferFormat(cell).kind, CellKind::kCsv) << cell;
  }
  for (const char* cell : {"023,", ",123", "1,,2", "1e,2", "1;2", "[1,2}", "[1,2", "[]", "{1,NULL}",
                           "1,2,x", "1,2,,", ","}) {
    EXPECT_EQ(InferFormat(cell).kind, CellKind::kPlain) << cell;
  }
  for (const char* cell : {"100", "-100", "1.23", "1e5"}) {
    EXPECT_EQ(InferFormat(cell).kind, CellKind::kNumber) << cell;
  }
}

TEST(CellFormatTest, CsvKnowsItsElementsAndIndices) {
  const CellFormat ids = InferFormat("10,1,398,7");
  EXPECT_EQ(ids.elements, 4U);
  EXPECT_TRUE(ids.indices);
  EXPECT_EQ(ids.max_index, 398);
  EXPECT_FALSE(InferFormat("1,2.5").indices);
  EXPECT_FALSE(InferFormat("1,-2").indices);
}

TEST(CellFormatTest, KeyValuePairs) {
  for (const char* cell : {"1:3 2:4\t 3:5  4:9", "0:1.3 10:-3.2 20:132 7:32", "3:33", "12:30",
                           "1:0.1,2:0.5", "0:1,"}) {
    EXPECT_EQ(InferFormat(cell).kind, CellKind::kKeyValue) << cell;
  }
  for (const char* cell : {"-10:100", "10.2:23,", "0:abc", "12:30:45", "1:2 x", "a:1"}) {
    EXPECT_EQ(InferFormat(cell).kind, CellKind::kPlain) << cell;
  }
  EXPECT_EQ(InferFormat("1:2 3:4 2:1").max_index + 1, 4);
  EXPECT_EQ(InferFormat("7:2\t 3:-4 10:20").max_index + 1, 11);
}

TEST(CellFormatTest, TheWholeSampleDecides) {
  const ColumnFormat dense = Vote({"1,2,3", "4,5,6", "", "7,8,9"});
  EXPECT_EQ(dense.kind, ColumnFormatKind::kDenseCsv);
  EXPECT_EQ(dense.width, 3);
  EXPECT_EQ(dense.delimiter, ",");
  EXPECT_EQ(dense.max_index, 9);

  const ColumnFormat ragged = Vote({"1,2,3", "7", "4,11"});
  EXPECT_EQ(ragged.kind, ColumnFormatKind::kSparseCsv);
  EXPECT_EQ(ragged.width, 12);

  EXPECT_EQ(Vote({"1,2,3", "hello"}).kind, ColumnFormatKind::kText);
  EXPECT_EQ(Vote({"1.5,2", "3"}).kind, ColumnFormatKind::kText);
  EXPECT_EQ(Vote({"1", "2.5", "x"}).kind, ColumnFormatKind::kText);
  EXPECT_EQ(Vote({"1", "2.5", "1e9"}).kind, ColumnFormatKind::kNumber);
  EXPECT_EQ(Vote({"FEMALE", "MALE"}).kind, ColumnFormatKind::kText);
  EXPECT_EQ(Vote({}).kind, ColumnFormatKind::kText);
  EXPECT_EQ(Vote({"", " "}).kind, ColumnFormatKind::kText);
}

TEST(CellFormatTest, KeyValueColumns) {
  const ColumnFormat blanks = Vote({"1:2 3:4", "7:1", "10:20 2:1"});
  EXPECT_EQ(blanks.kind, ColumnFormatKind::kKeyValue);
  EXPECT_EQ(blanks.delimiter, "");
  EXPECT_EQ(blanks.key_value_delimiter, ":");
  EXPECT_EQ(blanks.width, 11);
  const ColumnFormat commas = Vote({"1:0.1,2:0.5", "3:0.9,4:0.8"});
  EXPECT_EQ(commas.kind, ColumnFormatKind::kKeyValue);
  EXPECT_EQ(commas.delimiter, ",");
  EXPECT_EQ(Vote({"1:2 3:4", "1:2,3:4"}).kind, ColumnFormatKind::kText);
  // Times are text: no cell has two pairs.
  EXPECT_EQ(Vote({"12:30", "08:15", "23:59"}).kind, ColumnFormatKind::kText);
}

TEST(CellFormatTest, NumbersInAnyForm) {
  EXPECT_EQ(ParseNumber(" 12 "), 12);
  EXPECT_EQ(ParseNumber("-7"), -7);
  EXPECT_EQ(ParseNumber("+3.5"), 3.5);
  EXPECT_EQ(ParseNumber("1e3"), 1000);
  EXPECT_EQ(ParseNumber(".5"), 0.5);
  EXPECT_EQ(ParseNumber("12345678901234567890"), 12345678901234567890.0);
  EXPECT_TRUE(std::isnan(ParseNumber("NaN").value()));
  EXPECT_TRUE(std::isinf(ParseNumber("1e999").value()));
  EXPECT_EQ(ParseNumber("1e-999"), 0);
  for (const char* text : {"", " ", "x", "1x", "-", "+", "+-1", "1 2", "0x10", "--1"}) {
    EXPECT_FALSE(ParseNumber(text).has_value()) << text;
  }
}

TEST(CellFormatTest, Timestamps) {
  EXPECT_EQ(ParseTimestamp("1970-01-02"), 86'400'000'000);
  EXPECT_EQ(ParseTimestamp("1970-01-01 00:00:01"), 1'000'000);
  EXPECT_EQ(ParseTimestamp("1970-01-01T00:01"), 60'000'000);
  EXPECT_EQ(ParseTimestamp("1970-01-01 00:00:00.5"), 500'000);
  EXPECT_EQ(ParseTimestamp("1970-01-01 02:00:00+02"), 0);
  EXPECT_EQ(ParseTimestamp("1969-12-31 19:00:00-05:00"), 0);
  for (const char* text :
       {"1970-13-01", "1970-02-30", "1970-1-1", "12:30", "1970-01-01 25:00", "1970-01-01x",
        "1970-01-01 00:00:00 +02 h", "1970-01-01 00:00:00-31", "1970-01-01 00:00:00+02:60", ""}) {
    EXPECT_FALSE(ParseTimestamp(text).has_value()) << text;
  }
  EXPECT_EQ(Vote({"2014-04-01", "2014-04-02"}).kind, ColumnFormatKind::kTimestamp);
  EXPECT_EQ(Vote({"2014-04-01", "yesterday"}).kind, ColumnFormatKind::kText);
}

}  // namespace
}  // namespace sluice::models
