#include "server/gateway/first_messages.h"
#include "tests/support/eventually.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace sluice::server {
namespace {

class FirstMessagesTest : public ::testing::Test {
 protected:
  using Wait = std::unique_ptr<FirstMessages::Wait>;
  Wait Begin(FirstMessages& calls, const std::string& address, int number) {
    return Wait(new FirstMessages::Wait(calls.Begin(address, [this, number] {
      cancelled_.insert(number);
      ++count_;
    })));
  }

  std::set<int> cancelled_;  // read when no call is cancelled any more
  std::atomic<int> count_ = 0;
};

TEST_F(FirstMessagesTest, TheOldestOfAnAddressMakesRoom) {
  FirstMessages calls(std::chrono::hours(1));
  std::vector<Wait> waits;
  waits.push_back(Begin(calls, "b", -1));
  for (int i = 0; i < static_cast<int>(FirstMessages::kMostOfAddress) + 2; ++i) {
    waits.push_back(Begin(calls, "a", i));
  }
  EXPECT_EQ(cancelled_, (std::set<int>{0, 1}));
  waits.erase(waits.begin() + 1, waits.begin() + 5);  // two cancelled ones and two others
  waits.push_back(Begin(calls, "a", 100));
  waits.push_back(Begin(calls, "a", 101));
  EXPECT_EQ(cancelled_, (std::set<int>{0, 1}));
}

TEST_F(FirstMessagesTest, TheAddressesOfANetworkAreOne) {
  FirstMessages calls(std::chrono::hours(1));
  std::vector<Wait> waits;
  waits.push_back(Begin(calls, "2001:db8:0:1::1", -1));
  for (int i = 0; i <= static_cast<int>(FirstMessages::kMostOfAddress); ++i) {
    waits.push_back(Begin(calls, "2001:db8::" + std::to_string(i), i));
  }
  EXPECT_EQ(cancelled_, (std::set<int>{0}));
}

TEST_F(FirstMessagesTest, TheOldestOfAllMakesRoom) {
  FirstMessages calls(std::chrono::hours(1));
  std::vector<Wait> waits;
  for (int i = 0; i <= static_cast<int>(FirstMessages::kMost); ++i) {
    waits.push_back(Begin(calls, std::to_string(i), i));
  }
  EXPECT_EQ(cancelled_, (std::set<int>{0}));
}

TEST_F(FirstMessagesTest, ACallThatIsTooOldIsCancelled) {
  FirstMessages calls(std::chrono::milliseconds(50));
  { const Wait answered = Begin(calls, "a", 0); }
  const Wait silent = Begin(calls, "a", 1);
  EXPECT_TRUE(Eventually([this] { return count_ > 0; }));
  const Wait later = Begin(calls, "a", 2);
  EXPECT_TRUE(Eventually([this] { return count_ > 1; }));
  EXPECT_EQ(cancelled_, (std::set<int>{1, 2}));
}

}  // namespace
}  // namespace sluice::server
