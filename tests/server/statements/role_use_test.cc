#include "server/statements/role_use.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace sluice::server {
namespace {

using ::testing::HasSubstr;

constexpr RoleUse::Most kMostOfRole{.sessions = 2, .jobs = 2, .statements = 60};

TimePoint AfterSeconds(double seconds) {
  return std::chrono::duration_cast<TimePoint>(std::chrono::duration<double>(seconds));
}

TEST(RoleUseTest, SessionsCountUntilTheyEnd) {
  RoleUse use(kMostOfRole);
  auto first = std::make_optional(use.BeginSession("ann").value());
  const auto second = use.BeginSession("ann");
  ASSERT_TRUE(second.ok());
  const Status third = use.BeginSession("ann").status();
  EXPECT_EQ(third.sqlstate(), "53300");
  EXPECT_THAT(third.message(), HasSubstr("role \"ann\" has 2 sessions"));
  EXPECT_THAT(third.diagnostics()[0].hint, HasSubstr("--role-limits sessions="));
  EXPECT_TRUE(use.BeginSession("bob").ok());
  EXPECT_TRUE(use.BeginSession("").ok());
  first.reset();
  EXPECT_TRUE(use.BeginSession("ann").ok());
}

TEST(RoleUseTest, StatementsAreForgottenSteadily) {
  RoleUse use(kMostOfRole);
  for (int i = 0; i < 60; ++i) {
    ASSERT_TRUE(use.BeginStatement("ann", AfterSeconds(100)).ok()) << i;
  }
  EXPECT_EQ(use.BeginStatement("ann", AfterSeconds(100)).sqlstate(), "53400");
  EXPECT_TRUE(use.BeginStatement("bob", AfterSeconds(100)).ok());
  EXPECT_TRUE(use.BeginStatement("", AfterSeconds(100)).ok());
  EXPECT_TRUE(use.BeginStatement("ann", AfterSeconds(101.5)).ok());
  EXPECT_EQ(use.BeginStatement("ann", AfterSeconds(101.6)).sqlstate(), "53400");
  for (int i = 0; i < 60; ++i) {
    ASSERT_TRUE(use.BeginStatement("ann", AfterSeconds(1'000)).ok()) << i;
  }
}

TEST(RoleUseTest, WithoutALimitNothingIsRefused) {
  RoleUse use({});
  std::vector<RoleUse::Session> sessions;
  for (int i = 0; i < 1'000; ++i) {
    Result<RoleUse::Session> session = use.BeginSession("ann");
    ASSERT_TRUE(session.ok());
    sessions.push_back(*std::move(session));
    ASSERT_TRUE(use.BeginStatement("ann", AfterSeconds(0)).ok());
    ASSERT_TRUE(use.BeginJob("ann", [] { return Result<int64_t>(1'000); }, {}).ok());
  }
}

// Each thread begins a job that its "catalog" counts from then on.
TEST(RoleUseTest, JobsThatBeginAtOnceAreNoMoreThanAllowed) {
  for (int round = 0; round < 50; ++round) {
    RoleUse use(kMostOfRole);
    std::atomic<int64_t> rows = 0;
    std::atomic<int> refused = 0;
    {
      std::vector<std::jthread> threads;
      threads.reserve(8);
      for (int i = 0; i < 8; ++i) {
        threads.emplace_back([&] {
          const auto begun = use.BeginJob("ann", [&] { return Result<int64_t>(rows.load()); }, {});
          if (begun.ok()) {
            std::this_thread::yield();
            ++rows;
          } else {
            EXPECT_EQ(begun.status().sqlstate(), "53300");
            ++refused;
          }
        });
      }
    }
    EXPECT_EQ(rows, 2);
    EXPECT_EQ(refused, 6);
  }
}

TEST(RoleUseTest, AJobThatDoesNotBeginLeavesItsPlace) {
  RoleUse use({.jobs = 1});
  const auto none = [] { return Result<int64_t>(0); };
  auto first = std::make_optional(use.BeginJob("ann", none, {}).value());
  std::atomic<bool> second = false;
  std::jthread waits([&] { second = use.BeginJob("ann", none, {}).ok(); });
  EXPECT_TRUE(use.BeginJob("bob", none, {}).ok());
  first.reset();
  waits.join();
  EXPECT_TRUE(second);
}

TEST(RoleUseTest, WhoWaitsCanBeCancelled) {
  RoleUse use({.jobs = 1});
  const auto none = [] { return Result<int64_t>(0); };
  const auto first = use.BeginJob("ann", none, {});
  ASSERT_TRUE(first.ok());
  Status outcome;
  std::jthread waits(
      [&](const std::stop_token& stop) { outcome = use.BeginJob("ann", none, stop).status(); });
  waits.request_stop();
  waits.join();
  EXPECT_EQ(outcome.sqlstate(), "57014");
}

TEST(RoleUseTest, ErrorsOfTheCatalogAreTheJobs) {
  RoleUse use(kMostOfRole);
  const auto lost = [] { return Result<int64_t>(Unavailable("the server is gone")); };
  EXPECT_EQ(use.BeginJob("ann", lost, {}).status().message(), "the server is gone");
}

}  // namespace
}  // namespace sluice::server
