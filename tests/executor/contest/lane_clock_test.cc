#include "executor/contest/lane_clock.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include "base/sleep.h"

namespace sluice::executor {
namespace {

using std::chrono::steady_clock;

void StayOn(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  ASSERT_EQ(sched_setaffinity(0, sizeof(set), &set), 0);
}

double SecondsSince(steady_clock::time_point then) {
  return std::chrono::duration<double>(steady_clock::now() - then).count();
}

// Works on one processor beside `others` that do, and returns the share of the time that counts.
double ShareBeside(int others) {
  const int processor = sched_getcpu();
  std::atomic<bool> over = false;
  std::vector<std::jthread> busy;
  for (int i = 0; i < others; ++i) {
    busy.emplace_back([&] {
      StayOn(processor);
      while (!over) {
      }
    });
  }
  double share = 0;
  std::jthread([&] {
    StayOn(processor);
    const LaneClock clock;
    const auto started = steady_clock::now();
    while (SecondsSince(started) < 1) {
    }
    share = clock.elapsed() / SecondsSince(started);
  }).join();
  over = true;
  return share;
}

TEST(LaneClock, DoesNotCountWhatOthersHadTheProcessorFor) {
  EXPECT_LT(ShareBeside(3), 0.6);   // a fourth of it
  EXPECT_GE(ShareBeside(15), 0.2);  // a fourth, too
}

TEST(LaneClock, CountsWhatItsThreadWaitsForOtherwise) {
  const LaneClock clock;
  const auto started = steady_clock::now();
  SleepFor(std::chrono::milliseconds(300), {});
  EXPECT_GT(clock.elapsed(), SecondsSince(started) / 4);
}

}  // namespace
}  // namespace sluice::executor
