#include "executor/processes/memory_place.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>

#include "executor/processes/slot_arbiter.h"

namespace sluice::executor {
namespace {

constexpr int64_t kAll = int64_t{1} << 30;

class MemoryPlaceTest : public ::testing::Test {
 protected:
  using Taken = Result<std::unique_ptr<MemoryPlace>>;

  static SlotArbiter::Options Machine() {
    SlotArbiter::Options options;
    options.slots = 2;
    options.memory_bytes = kAll;
    options.autoscaler.hysteresis_seconds = 0;
    return options;
  }
  Taken Take(int64_t bytes) { return Take(arbiter_, "ann", bytes); }
  Taken Take(SlotArbiter& arbiter, const std::string& owner, int64_t bytes) {
    return MemoryPlace::Take(arbiter, {"job 1", owner, bytes, 0}, stop_.get_token(), [this] {
      waiting_ = true;
      waiting_.notify_all();
    });
  }
  std::future<Taken> TakeLater(int64_t bytes) {
    return std::async(std::launch::async, [this, bytes] { return Take(bytes); });
  }

  SlotArbiter arbiter_{Machine()};
  std::stop_source stop_;
  std::atomic<bool> waiting_ = false;
};

TEST_F(MemoryPlaceTest, TrainingsTogetherTakeNoMoreThanThereIs) {
  Taken first = Take(kAll / 2);
  Taken second = Take(kAll / 4);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_FALSE(waiting_);
  std::future<Taken> third = TakeLater(kAll / 2);
  waiting_.wait(false);
  EXPECT_EQ(arbiter_.State().processes.size(), 2U);
  first->reset();
  const Taken granted = third.get();
  EXPECT_TRUE(granted.ok()) << granted.status().ToString();
}

TEST_F(MemoryPlaceTest, WorkersOfOtherJobsTakeIt) {
  Room::Request workers;
  workers.name = "workers";
  workers.memory_bytes = kAll / 2;
  const int64_t job = arbiter_.Enter(workers, [](const Room::Grant&) {}).value();
  std::future<Taken> taken = TakeLater(kAll / 2 + 1);
  waiting_.wait(false);
  arbiter_.Leave(job);
  EXPECT_TRUE(taken.get().ok());
}

TEST_F(MemoryPlaceTest, ACancelEndsTheWait) {
  const Taken all = Take(kAll);
  ASSERT_TRUE(all.ok());
  std::future<Taken> next = TakeLater(kAll / 2);
  waiting_.wait(false);
  stop_.request_stop();
  const Taken cancelled = next.get();
  EXPECT_EQ(cancelled.status().code(), Code::kCancelled);
  EXPECT_EQ(arbiter_.State().jobs.size(), 1U);
}

TEST_F(MemoryPlaceTest, AnEstimateAboveTheLimitTakesAllOfIt) {
  const Taken all = Take(2 * kAll);
  EXPECT_TRUE(all.ok()) << all.status().ToString();
  EXPECT_EQ(arbiter_.State().processes.at(0).request.memory_bytes, kAll);
}

TEST_F(MemoryPlaceTest, SmallTrainingsNeverWait) {
  const Taken all = Take(kAll);
  const Taken small = Take(kAll / 64);
  ASSERT_TRUE(all.ok() && small.ok());
  EXPECT_EQ(*small, nullptr);
}

// It takes no processor from the workers of other jobs.
TEST_F(MemoryPlaceTest, ItNeedsNoSlot) {
  Room::Request workers;
  workers.min = 2;
  workers.max = 2;
  std::promise<void> granted;
  const int64_t job =
      arbiter_.Enter(workers, [&](const Room::Grant&) { granted.set_value(); }).value();
  granted.get_future().wait();
  EXPECT_TRUE(Take(kAll / 2).ok());
  arbiter_.Leave(job);
}

// Where roles log in, none keeps the others out.
TEST_F(MemoryPlaceTest, ARoleHasAtMostHalf) {
  SlotArbiter::Options options = Machine();
  options.shared_by_roles = true;
  SlotArbiter arbiter(options);
  EXPECT_EQ(Take(arbiter, "ann", kAll / 2 + 1).status().sqlstate(), "53200");
  Taken first = Take(arbiter, "ann", kAll / 4);
  Taken second = Take(arbiter, "ann", kAll / 4);
  ASSERT_TRUE(first.ok() && second.ok());
  auto third = std::async(std::launch::async, [&] { return Take(arbiter, "ann", kAll / 8); });
  waiting_.wait(false);
  EXPECT_TRUE(Take(arbiter, "bob", kAll / 2).ok());
  first->reset();
  EXPECT_TRUE(third.get().ok());
}

}  // namespace
}  // namespace sluice::executor
