#include "base/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice {
namespace {

TEST(Utf8, ACharacterIsWellFormed) {
  for (const char32_t code : {U'a', U'\u00e9', U'\u20ac', U'\U0001f642', U'\U0010ffff'}) {
    std::string text;
    AppendCharacter(code, &text);
    EXPECT_EQ(CharacterAt(text, 0).code, code);
    EXPECT_EQ(CharacterAt(text, 0).bytes, text.size());
    EXPECT_EQ(CharacterAt(text + "a", 0).bytes, text.size());
    EXPECT_TRUE(IsUtf8("x" + text));
    text.pop_back();
    EXPECT_EQ(IsUtf8(text), text.empty());
  }
  // Over-long forms, a surrogate, beyond the last code point, parts of characters.
  for (const char* text :
       {"\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf", "\xed\xa0\x80",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\x80", "\xe2\x82", "\xff"}) {
    EXPECT_EQ(CharacterAt(text, 0).bytes, 0U) << text;
    EXPECT_FALSE(IsUtf8(text)) << text;
  }
}

TEST(Utf8, IsCutBetweenCharacters) {
  EXPECT_EQ(CutToBytes("a\u20acb", 9), "a\u20acb");
  EXPECT_EQ(CutToBytes("a\u20acb", 4), "a\u20ac");
  EXPECT_EQ(CutToBytes("a\u20acb", 3), "a");
  EXPECT_EQ(CutToBytes("a\u20acb", 1), "a");
  EXPECT_EQ(CutToBytes("\u20ac", 2), "");
}

TEST(Utf8, OtherBytesAreReplaced) {
  EXPECT_EQ(ValidUtf8("a\xff\u20ac\xe2\x82"), "a\ufffd\u20ac\ufffd\ufffd");
}

TEST(Utf8, WhatATerminalObeysIsSpelledOut) {
  EXPECT_EQ(Printable("a\nb\tc\x1b[2J\u009b\u202e\xff \u20ac"),
            "a\\nb\\tc\\x1b[2J\\u009b\\u202e\\xff \u20ac");
  EXPECT_EQ(PrintableLines("a\nb\t\r"), "a\nb\t\\x0d");
}

}  // namespace
}  // namespace sluice
