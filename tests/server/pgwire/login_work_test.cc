#include "server/pgwire/login_work.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <string>

#include "tests/support/eventually.h"

namespace sluice::server::pgwire {
namespace {

TEST(LoginWork, OfOneRoleDelaysNobodyElses) {
  std::promise<void> go;
  const std::shared_future<void> gone = go.get_future().share();
  std::atomic<int> done = 0;
  std::atomic<bool> begun = false;
  LoginWork work;
  const auto slow = [&] {
    begun = true;
    gone.wait();
    ++done;
  };
  ASSERT_TRUE(work.Put("flooded", slow).ok());
  ASSERT_TRUE(Eventually([&] { return begun.load(); }));
  for (size_t i = 0; i < LoginWork::kMostOfRole; ++i) {
    ASSERT_TRUE(work.Put("flooded", slow).ok());
  }
  EXPECT_EQ(work.Put("flooded", slow).sqlstate(), "53300");
  std::promise<void> other;
  ASSERT_TRUE(work.Put("other", [&] { other.set_value(); }).ok());
  other.get_future().wait();
  EXPECT_EQ(done, 0);
  go.set_value();
  EXPECT_TRUE(Eventually([&] { return done == 1 + static_cast<int>(LoginWork::kMostOfRole); }));
  EXPECT_TRUE(work.Put("flooded", [&] { ++done; }).ok());
}

TEST(LoginWork, WhatWaitsIsDroppedAtTheEnd) {
  std::promise<void> go;
  std::atomic<bool> begun = false;
  std::atomic<int> done = 0;
  {
    LoginWork work;
    ASSERT_TRUE(work.Put("a",
                         [&] {
                           begun = true;
                           go.get_future().wait();
                         })
                    .ok());
    ASSERT_TRUE(work.Put("a", [&] { ++done; }).ok());
    ASSERT_TRUE(Eventually([&] { return begun.load(); }));
    go.set_value();
  }
  EXPECT_LE(done, 1);
}

}  // namespace
}  // namespace sluice::server::pgwire
