#include "server/statements/refused_logins.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice::server {
namespace {

constexpr TimePoint At(double seconds) {
  return TimePoint(static_cast<int64_t>(seconds * 1e9)) + std::chrono::hours(1);
}

RefusedLogins::Login By(const std::string& address, const std::string& role,
                        const std::string& outcome = "28P01") {
  return {"grpc", role, address, outcome, "no"};
}

TEST(RefusedLogins, TheFirstHasALineAndTheOthersOfAMinuteASum) {
  RefusedLogins logins;
  EXPECT_EQ(logins.NextEnd(), std::nullopt);
  EXPECT_TRUE(logins.Add(By("10.0.0.1", "ann"), At(0), 1));
  for (int i = 1; i <= 1'000; ++i) {
    EXPECT_FALSE(logins.Add(By("10.0.0.1", "ann"), At(1), 1 + i));
  }
  EXPECT_TRUE(logins.Add(By("10.0.0.1", "bob"), At(1), 1));
  EXPECT_TRUE(logins.Add(By("10.0.0.2", "ann"), At(1), 1));
  EXPECT_TRUE(logins.Add(By("10.0.0.1", "ann", "28000"), At(1), 1));
  EXPECT_EQ(logins.NextEnd(), At(RefusedLogins::kWindowSeconds));
  EXPECT_TRUE(logins.TakeOver(At(RefusedLogins::kWindowSeconds - 1)).empty());
  const auto sums = logins.TakeOver(At(RefusedLogins::kWindowSeconds));
  ASSERT_EQ(sums.size(), 1U);
  EXPECT_EQ(sums[0].count, 1'000);
  EXPECT_EQ(sums[0].since_micros, 2);
  EXPECT_EQ(sums[0].login.address, "10.0.0.1");
  EXPECT_EQ(sums[0].login.role, "ann");
  EXPECT_EQ(sums[0].login.outcome, "28P01");
  EXPECT_EQ(sums[0].login.reason, "no");
}

TEST(RefusedLogins, WhoGoesOnHasALineAMinuteAndWhoIsQuietALineAgain) {
  RefusedLogins logins;
  EXPECT_TRUE(logins.Add(By("10.0.0.1", "ann"), At(0), 0));
  EXPECT_FALSE(logins.Add(By("10.0.0.1", "ann"), At(1), 0));
  EXPECT_EQ(logins.TakeOver(At(60)).size(), 1U);
  EXPECT_FALSE(logins.Add(By("10.0.0.1", "ann"), At(61), 0));
  EXPECT_EQ(logins.TakeOver(At(120)).size(), 1U);
  EXPECT_TRUE(logins.TakeOver(At(180)).empty());
  EXPECT_EQ(logins.NextEnd(), std::nullopt) << "nothing is kept";
  EXPECT_TRUE(logins.Add(By("10.0.0.1", "ann"), At(181), 0));
}

TEST(RefusedLogins, MadeUpRolesOfOneNetworkCountTogether) {
  RefusedLogins logins;
  size_t lines = 0;
  for (int i = 0; i < 10'000; ++i) {
    lines += logins.Add(By("2001:db8::" + std::to_string(i % 1000), "role" + std::to_string(i)),
                        At(0), 0)
                 ? 1
                 : 0;
  }
  EXPECT_EQ(lines, RefusedLogins::kMostOfNetwork + 1);
  EXPECT_TRUE(logins.Add(By("10.0.0.2", "ann"), At(0), 0)) << "elsewhere";
  const auto sums = logins.TakeAll();
  ASSERT_EQ(sums.size(), 1U);
  EXPECT_EQ(sums[0].login.role, "");
  EXPECT_EQ(sums[0].count, 10'000 - static_cast<int64_t>(lines));
}

TEST(RefusedLogins, ManyNetworksCountTogether) {
  RefusedLogins logins;
  size_t lines = 0;
  constexpr int kMany = 5'000;
  for (int i = 0; i < kMany; ++i) {
    const std::string address = "10.0." + std::to_string(i / 250) + "." + std::to_string(i % 250);
    lines += logins.Add(By(address, "ann"), At(0), 0) ? 1 : 0;
  }
  EXPECT_EQ(lines, RefusedLogins::kMostNetworks + 1);
  const auto sums = logins.TakeAll();
  ASSERT_EQ(sums.size(), 1U);
  EXPECT_EQ(sums[0].login.address, "");
  EXPECT_EQ(sums[0].count, kMany - static_cast<int64_t>(lines));
}

}  // namespace
}  // namespace sluice::server
