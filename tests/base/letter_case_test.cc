#include "base/letter_case.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(LetterCase, OnlyLettersOfAsciiHaveOne) {
  EXPECT_EQ(LowerAscii("AZ az @[`{ 09 \xC3\x84"), "az az @[`{ 09 \xC3\x84");  // an A with dots
  EXPECT_EQ(UpperAscii("AZ az @[`{ 09 \xC3\xA4"), "AZ AZ @[`{ 09 \xC3\xA4");
  EXPECT_EQ(LowerAscii(""), "");
}

TEST(LetterCase, NamesAreTheSameInEither) {
  EXPECT_TRUE(SameIgnoringCase("DNNClassifier", "dnnCLASSIFIER"));
  EXPECT_TRUE(SameIgnoringCase("", ""));
  EXPECT_FALSE(SameIgnoringCase("id", "ids"));
  EXPECT_FALSE(SameIgnoringCase("@", "`"));  // 32 apart, as a letter's two cases are
  EXPECT_FALSE(SameIgnoringCase("\xC3\x84", "\xC3\xA4"));
}

}  // namespace
}  // namespace sluice
