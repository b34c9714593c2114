#include <gtest/gtest.h>

#include "models/features/cell_format.h"

namespace sluice::models {
namespace {

TEST(GroupedNumber, ReadsTheCommaOrThePoint) {
  EXPECT_EQ(ParseGroupedNumber("1.234,5", '.', ','), 1234.5);
  EXPECT_EQ(ParseGroupedNumber("-0,75", '.', ','), -0.75);
  EXPECT_EQ(ParseGroupedNumber(" 12 ", '.', ','), 12);
  EXPECT_EQ(ParseGroupedNumber("1.234.567", '.', ','), 1234567);
  EXPECT_EQ(ParseGroupedNumber("1,234,567.25", ',', '.'), 1234567.25);
  EXPECT_EQ(ParseGroupedNumber("1234567,5", '.', ','), 1234567.5);
}

TEST(GroupedNumber, RefusesWhatIsNoNumber) {
  for (const char* text : {"", "-", "1.23,5", "1.2345", ".123", "1,", "1,2,3", "1,-2", "1e5", "a",
                           "1234.567", "1..234", "1,5 kg"}) {
    EXPECT_EQ(ParseGroupedNumber(text, '.', ','), std::nullopt) << text;
  }
}

TEST(UnitNumber, MayBeBelowZero) {
  for (const char* text :
       {"-$1,234.50", "$-1,234.50", "($1,234.50)", "- $1,234.50", "( $1,234.50 )"}) {
    const std::optional<UnitNumber> found = ParseUnitNumber(text);
    ASSERT_TRUE(found.has_value()) << text;
    EXPECT_EQ(found->number, -1234.5) << text;
    EXPECT_EQ(found->unit, "$#") << text;
  }
  EXPECT_EQ(ParseUnitNumber("-3.5 %")->number, -3.5);
  for (const char* text : {"-$-5", "($-5)", "--$5", "-(5)", "-kg", "()", "(-)", "-A12"}) {
    EXPECT_FALSE(ParseUnitNumber(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace sluice::models
