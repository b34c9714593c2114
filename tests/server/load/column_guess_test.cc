#include "server/load/column_guess.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string_view>

namespace sluice::server {
namespace {

GuessedType Guess(std::initializer_list<std::string_view> cells) {
  ColumnGuess guess;
  for (const std::string_view cell : cells) {
    guess.See(cell);
  }
  return guess.type();
}

TEST(ColumnGuess, TakesTheNarrowestTypeOfAllCells) {
  using enum GuessedType;
  EXPECT_EQ(Guess({"1", "-5", "0", "9223372036854775807"}), kInteger);
  EXPECT_EQ(Guess({"1", "2.5"}), kNumber);
  EXPECT_EQ(Guess({"1e5", ".5", "5.", "-0.1E-3"}), kNumber);
  EXPECT_EQ(Guess({"true", "FALSE", "True"}), kFlag);
  EXPECT_EQ(Guess({"2024-02-29", "1999-12-31"}), kDate);
  EXPECT_EQ(Guess({"2024-02-29", "2024-02-29 10:20"}), kTimestamp);
  EXPECT_EQ(Guess({"2024-02-29T10:20:30.123456"}), kTimestamp);
  EXPECT_EQ(Guess({"2024-02-29T10:20:30Z", "2024-02-29 10:20:30+02:00"}), kTimestampWithZone);
  EXPECT_EQ(Guess({"abc"}), kText);
  EXPECT_EQ(Guess({}), kText);
}

// Texts that a number would not reproduce.
TEST(ColumnGuess, NamesThatLookLikeNumbersStayTexts) {
  using enum GuessedType;
  EXPECT_EQ(Guess({"01234", "5"}), kText);
  EXPECT_EQ(Guess({"+49 30"}), kText);
  EXPECT_EQ(Guess({"+5"}), kText);
  EXPECT_EQ(Guess({"0x10"}), kText);
  EXPECT_EQ(Guess({"1,000"}), kText);
  EXPECT_EQ(Guess({"9223372036854775808"}), kText) << "beyond 64 bits";
  EXPECT_EQ(Guess({"123456789012345678901234567890"}), kText);
  EXPECT_EQ(Guess({"1e999"}), kText);
  EXPECT_EQ(Guess({"inf"}), kText);
  EXPECT_EQ(Guess({"2023-02-29"}), kText) << "no such day";
  EXPECT_EQ(Guess({"2024-13-01"}), kText);
  EXPECT_EQ(Guess({"01/02/2020"}), kText);
  EXPECT_EQ(Guess({"2024-02-29 25:00"}), kText);
  EXPECT_EQ(Guess({"2024-02-29T10:20Z", "2024-02-29T10:20"}), kText) << "zones, and none";
  EXPECT_EQ(Guess({"2024-02-29", "2024-02-29T10:20Z"}), kText);
  EXPECT_EQ(Guess({"true", "1"}), kText);
  EXPECT_EQ(Guess({"-"}), kText);
  EXPECT_EQ(Guess({"."}), kText);
  EXPECT_EQ(Guess({"-."}), kText);
  EXPECT_EQ(Guess({"1e"}), kText);
}

TEST(ColumnGuess, MarksOfMissingValuesDecideNothing) {
  using enum GuessedType;
  EXPECT_EQ(Guess({"NA", "1", "", "n/a", "?"}), kInteger);
  EXPECT_EQ(Guess({"1.5", "NaN", "NULL"}), kNumber);
  EXPECT_EQ(Guess({"\\N", "2024-01-01"}), kDate);
  EXPECT_EQ(Guess({"NA", "None"}), kText) << "of no other cell is anything known";
  ColumnGuess guess;
  guess.See("NA");
  guess.See("5");
  guess.See("null");
  EXPECT_EQ(guess.marks(), 2);
}

TEST(ColumnGuess, NumbersAreReadExactly) {
  EXPECT_EQ(ReadInteger("-9223372036854775808"), INT64_MIN);
  EXPECT_EQ(ReadInteger("-"), std::nullopt);
  EXPECT_EQ(ReadInteger(""), std::nullopt);
  EXPECT_EQ(ReadNumber("0.1"), 0.1);
  EXPECT_EQ(ReadNumber("1e-400"), std::nullopt);
  EXPECT_EQ(ReadFlag("yes"), std::nullopt);
}

}  // namespace
}  // namespace sluice::server
