#include "models/features/word_reader.h"

#include <gmock/gmock.h>

#include <string>

namespace sluice::models {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(WordReader, WordsInLowerCase) {
  EXPECT_THAT(WordsOf("Don't PANIC: it's 42!"), ElementsAre("dont", "panic", "its", "42"));
  EXPECT_THAT(WordsOf("  ... \n"), IsEmpty());
  EXPECT_THAT(WordsOf("ÄRGER Ωmega ЖУК"), ElementsAre("ärger", "ωmega", "жук"));
  EXPECT_THAT(WordsOf("£100 now"), ElementsAre("£", "100", "now"));
  EXPECT_THAT(WordsOf("日本語 ok"), ElementsAre("日", "本", "語", "ok"));
}

TEST(WordReader, LongNumbersTellTheirLength) {
  EXPECT_THAT(WordsOf("call 08452810075"), ElementsAre("call", "08452810075", "#11"));
  EXPECT_THAT(WordsOf("in 2020"), ElementsAre("in", "2020"));
}

TEST(WordReader, BytesThatAreNoUtf8EndWords) {
  EXPECT_THAT(WordsOf("a\xFF"
                      "b\xC3"),
              ElementsAre("a", "b"));
}

TEST(WordReader, CountsWhatBlanksSeparate) {
  EXPECT_EQ(CountWords("http://example.org/a/b", 10), 1U);
  EXPECT_EQ(CountWords("two words, 3", 10), 2U);
  EXPECT_EQ(CountWords("a b c d e", 3), 3U);
  EXPECT_EQ(CountWords("日本語語", 10), 2U);
}

TEST(WordReader, BucketsOfRuns) {
  const auto one = WordBuckets("a b", 1, 1U << 20U);
  const auto two = WordBuckets("a b", 2, 1U << 20U);
  EXPECT_EQ(one.size(), 2U);
  EXPECT_EQ(two.size(), 3U);
  EXPECT_TRUE(std::includes(two.begin(), two.end(), one.begin(), one.end()));
  EXPECT_NE(WordBuckets("a b", 2, 1U << 20U), WordBuckets("b a", 2, 1U << 20U));
  EXPECT_EQ(WordBuckets("x x x", 1, 8), std::vector<uint32_t>(3, WordBuckets("x", 1, 8)[0]));
  // Stored in models, so it must not change.
  EXPECT_EQ(WordBuckets("hello", 1, 1000)[0], 127U);
}

TEST(WordReader, AVeryLongCellEnds) {
  std::string text;
  for (size_t i = 0; i < 3 * kMaxWordsOfCell; ++i) {
    text += "w" + std::to_string(i) + " ";
  }
  EXPECT_LE(WordsOf(text).size(), kMaxWordsOfCell + 1);
}

}  // namespace
}  // namespace sluice::models
