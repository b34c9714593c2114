#include "server/statements/full_texts.h"

#include <gtest/gtest.h>

namespace sluice::server {
namespace {

TEST(FullTexts, AreSoManyBytesOfARoleAMinute) {
  constexpr size_t kMost = FullTexts::kBytesAMinute;
  const TimePoint begin{std::chrono::hours(1)};
  FullTexts texts;
  EXPECT_TRUE(texts.Take("ann", kMost - 10, begin));
  EXPECT_FALSE(texts.Take("ann", 11, begin));
  EXPECT_TRUE(texts.Take("ann", 10, begin + std::chrono::seconds(1))) << "one that still fits";
  EXPECT_FALSE(texts.Take("ann", 1, begin + std::chrono::seconds(59)));
  EXPECT_TRUE(texts.Take("bob", kMost, begin + std::chrono::seconds(59)));
  EXPECT_TRUE(texts.Take("ann", kMost, begin + std::chrono::seconds(60)));
  EXPECT_FALSE(texts.Take("ann", kMost + 1, begin + std::chrono::seconds(200)));
}

}  // namespace
}  // namespace sluice::server
