#include "k8s/quantity/quantity.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace sluice::k8s {
namespace {

TEST(Quantity, IsReadExactlyAndWrittenAsTheApiServerWrites) {
  struct Case {
    std::string text;
    int64_t whole;
    int32_t nanos;
    std::string canonical;
  };
  const std::vector<Case> cases = {
      {"0", 0, 0, "0"},
      {"2", 2, 0, "2"},
      {"0.5", 0, 500'000'000, "500m"},
      {".5", 0, 500'000'000, "500m"},
      {"1.", 1, 0, "1"},
      {"+3", 3, 0, "3"},
      {"-0.5", -1, 500'000'000, "-500m"},
      {"-1500m", -2, 500'000'000, "-1500m"},
      {"1500m", 1, 500'000'000, "1500m"},
      {"100m", 0, 100'000'000, "100m"},
      {"1u", 0, 1000, "1u"},
      {"7n", 0, 7, "7n"},
      {"1000", 1000, 0, "1k"},
      {"4G", 4'000'000'000, 0, "4G"},
      {"4Gi", int64_t{4} << 30, 0, "4Gi"},
      {"0.5Gi", int64_t{512} << 20, 0, "512Mi"},
      {"1.5Gi", int64_t{1536} << 20, 0, "1536Mi"},
      {"1.1Ki", 1126, 400'000'000, "1126400m"},
      {"0.5Ki", 512, 0, "512"},
      {"8Ei", 0, 0, ""},  // 2^63
      {"7Ei", int64_t{7} << 60, 0, "7Ei"},
      {"9223372036854775807", std::numeric_limits<int64_t>::max(), 0, "9223372036854775807"},
      {"12e6", 12'000'000, 0, "12e6"},
      {"12E6", 12'000'000, 0, "12e6"},
      {"12e5", 1'200'000, 0, "1200e3"},
      {"5e-3", 0, 5'000'000, "5e-3"},
      {"1E", 1'000'000'000'000'000'000, 0, "1E"},
      {"0e900", 0, 0, "0"},
      {"0.000000001", 0, 1, "1n"},
      {"0.00000000000000000000000000000000000000000000000000", 0, 0, "0"},
      {"2607616Ki", 2607616LL * 1024, 0, "2607616Ki"},
  };
  for (const Case& each : cases) {
    const Result<Quantity> read = ParseQuantity(each.text);
    if (each.canonical.empty()) {
      EXPECT_FALSE(read.ok()) << each.text;
      continue;
    }
    ASSERT_TRUE(read.ok()) << each.text << ": " << read.status().ToString();
    EXPECT_EQ(read->whole(), each.whole) << each.text;
    EXPECT_EQ(read->nanos(), each.nanos) << each.text;
    EXPECT_EQ(read->ToString(), each.canonical) << each.text;
  }
}

TEST(Quantity, WhatIsNoneIsRefusedWithWhatWouldBeRight) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"4GB", "write 4Gi (powers of 1024) or 4G (powers of 1000)"},
      {"4gb", "write 4Gi (powers of 1024) or 4G (powers of 1000)"},
      {"512MiB", "write 512Mi (powers of 1024) or 512M (powers of 1000)"},
      {"8K", "write 8k (1000) or 8Ki (1024)"},
      {"8kB", "write 8Ki (powers of 1024) or 8k (powers of 1000)"},
      {"2 cpu", "a number, then nothing or one of n u m k M G T P E Ki Mi Gi Ti Pi Ei"},
      {"", "for instance 2, 0.5, 500m, 4Gi"},
      {"-", "for instance 2, 0.5, 500m, 4Gi"},
      {".", "for instance 2, 0.5, 500m, 4Gi"},
      {"Gi", "for instance 2, 0.5, 500m, 4Gi"},
      {std::string(100, '1'), "for instance 2, 0.5, 500m, 4Gi"},
      {"1e", "write 1Ei (powers of 1024) or 1E (powers of 1000)"},
      {"1.2.3", "a number, then nothing or one of n u m k M G T P E Ki Mi Gi Ti Pi Ei"},
  };
  for (const auto& [text, hint] : cases) {
    const Result<Quantity> read = ParseQuantity(text);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.status().diagnostics()[0].hint, hint) << text;
  }
}

TEST(Quantity, NothingIsRoundedOrCutInSilence) {
  for (const std::string text : {"0.1n", "1e-10", "0.0000000001", "9223372036854775808", "10E",
                                 "1e19", "-8Ei", "1e999", "99999999999999999999Ei"}) {
    EXPECT_FALSE(ParseQuantity(text).ok()) << text;
  }
}

TEST(Quantity, IsMadeFromNumbers) {
  EXPECT_EQ(Quantity::OfMillis(1500).ToString(), "1500m");
  EXPECT_EQ(Quantity::OfMillis(-1).ToString(), "-1m");
  EXPECT_EQ(Quantity::OfMillis(2000).ToString(), "2");
  EXPECT_EQ(Quantity::OfBytes(int64_t{3} << 30).ToString(), "3Gi");
  EXPECT_EQ(Quantity::OfBytes(1000).ToString(), "1k");
  EXPECT_TRUE(Quantity::OfMillis(500) < Quantity::OfMillis(501));
  EXPECT_EQ(ParseQuantity("0.1")->AsDouble(), 0.1);
  EXPECT_EQ(ParseQuantity("1.1Ki")->RoundedUp(), 1127);
}

}  // namespace
}  // namespace sluice::k8s
