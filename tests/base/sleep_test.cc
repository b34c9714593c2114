#include "base/sleep.h"

#include <gtest/gtest.h>

#include <chrono>
#include <stop_token>
#include <thread>

namespace sluice {
namespace {

TEST(SleepFor, EndsByItselfOrWhenStopped) {
  std::stop_source source;
  EXPECT_TRUE(SleepFor(std::chrono::milliseconds(1), source.get_token()));
  EXPECT_TRUE(SleepFor(std::chrono::milliseconds(1), {}));
  const std::jthread stops([&source] { source.request_stop(); });
  EXPECT_FALSE(SleepFor(std::chrono::hours(1), source.get_token()));
  EXPECT_FALSE(SleepFor(std::chrono::hours(1), source.get_token()));
}

}  // namespace
}  // namespace sluice
