#include "server/gateway/readiness.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace sluice::server {
namespace {

TEST(Readiness, IsWhatTheLastLookFound) {
  std::atomic<bool> there = false;
  std::atomic<int> looks = 0;
  const Readiness readiness([&] {
    ++looks;
    return there ? OkStatus() : Unavailable("the database is away");
  });
  while (looks == 0 || readiness.last().message() != "the database is away") {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(readiness.last().code(), Code::kUnavailable);
  there = true;
  while (!readiness.last().ok()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_GE(looks, 2);
}

TEST(Readiness, IsNotGivenBeforeTheFirstAnswer) {
  std::atomic<bool> go = false;
  const Readiness readiness([&] {
    while (!go) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return OkStatus();
  });
  EXPECT_FALSE(readiness.last().ok()) << "and nobody is held up who asks";
  go = true;
}

}  // namespace
}  // namespace sluice::server
