#include "executor/processes/slot_arbiter.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

namespace sluice::executor {
namespace {

class SlotArbiterTest : public ::testing::Test {
 protected:
  static SlotArbiter::Options Machine() {
    SlotArbiter::Options options;
    options.slots = 4;
    options.memory_bytes = int64_t{8} << 30;
    options.autoscaler.hysteresis_seconds = 0;
    return options;
  }
  int64_t Enter(const std::string& name, uint32_t min, uint32_t max, int priority = 0,
                int64_t memory = 0) {
    SlotArbiter::Request request;
    request.name = name;
    request.min = min;
    request.max = max;
    request.priority = priority;
    request.memory_bytes = memory;
    return arbiter_
        .Enter(request,
               [this, name](const SlotArbiter::Grant& grant) {
                 const std::lock_guard lock(mutex_);
                 grants_[name] = grant;
                 changed_.notify_all();
               })
        .value();
  }
  // Waits until the job is granted this many workers, and starts or ends them.
  void Reach(int64_t job, const std::string& name, uint32_t workers) {
    {
      std::unique_lock lock(mutex_);
      ASSERT_TRUE(changed_.wait_for(lock, std::chrono::seconds(30),
                                    [&] { return grants_[name].workers == workers; }))
          << name << " has " << grants_[name].workers;
    }
    std::vector<int64_t>& live = live_[job];
    while (live.size() < workers) {
      live.push_back(arbiter_.WorkerStarted(job));
    }
    while (live.size() > workers) {
      End(job, false);
    }
  }

  void End(int64_t job, bool out_of_memory) {
    arbiter_.WorkerEnded(job, live_[job].back(), out_of_memory);
    live_[job].pop_back();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, SlotArbiter::Grant> grants_;
  std::map<int64_t, std::vector<int64_t>> live_;  // memory of each worker
  SlotArbiter arbiter_{Machine()};
};

TEST_F(SlotArbiterTest, GrowsPreemptsAndGivesBack) {
  const int64_t low = Enter("low", 1, 8);
  Reach(low, "low", 4);
  const int64_t high = Enter("high", 1, 3, 10);
  Reach(low, "low", 1);  // one worker has to leave before the other job may start
  Reach(high, "high", 3);
  arbiter_.Leave(high);
  Reach(low, "low", 4);
}

TEST_F(SlotArbiterTest, NothingIsGrantedTwice) {
  const int64_t low = Enter("low", 1, 4);
  Reach(low, "low", 4);
  Enter("high", 4, 4, 10);
  {
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(changed_.wait_for(lock, std::chrono::seconds(30), [&] {
      return grants_["low"].workers == 0 && grants_["high"].wanted == 4;
    }));
    EXPECT_EQ(grants_["high"].workers, 0U);  // those of the other job still run
  }
  for (int i = 0; i < 3; ++i) {
    End(low, false);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  {
    const std::lock_guard lock(mutex_);
    EXPECT_EQ(grants_["high"].workers, 0U);  // it begins with all that it needs, or not at all
  }
  End(low, false);
  std::unique_lock lock(mutex_);
  EXPECT_TRUE(changed_.wait_for(lock, std::chrono::seconds(30),
                                [&] { return grants_["high"].workers == 4; }));
}

// No worker has to leave, so none will tell that its place is free.
TEST_F(SlotArbiterTest, AGrantTakenBackBeforeItsWorkersStartFreesItsPlaces) {
  Enter("low", 4, 4);
  {
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(changed_.wait_for(lock, std::chrono::seconds(30),
                                  [&] { return grants_["low"].workers == 4; }));
  }
  const int64_t high = Enter("high", 4, 4, 10);
  Reach(high, "high", 4);
  const std::lock_guard lock(mutex_);
  EXPECT_EQ(grants_["low"].workers, 0U);
}

// A12: a worker that is about to leave counts as free already; no other worker is taken for it.
TEST_F(SlotArbiterTest, A12_AWorkerOnItsWayOutIsNotTakenTwice) {
  const int64_t low = Enter("low", 1, 4);
  Reach(low, "low", 4);
  Enter("high", 1, 1, 10);
  {
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(changed_.wait_for(lock, std::chrono::seconds(30),
                                  [&] { return grants_["low"].workers == 3; }));
  }
  for (int look = 0; look < 10; ++look) {
    Enter("waits " + std::to_string(look), 4, 4, -10);  // each entry triggers a new decision
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const std::lock_guard lock(mutex_);
    EXPECT_EQ(grants_["low"].workers, 3U);
    EXPECT_EQ(grants_["high"].workers, 0U);
  }
  End(low, false);
  std::unique_lock lock(mutex_);
  EXPECT_TRUE(changed_.wait_for(lock, std::chrono::seconds(30),
                                [&] { return grants_["high"].workers == 1; }));
}

TEST_F(SlotArbiterTest, MemoryGrowsAfterWorkersRanOutOfIt) {
  const int64_t job = Enter("job", 1, 4, 0, int64_t{2} << 30);
  Reach(job, "job", 4);
  End(job, true);
  Reach(job, "job", 3);  // three with 2 GiB leave no room for one with 3
  End(job, false);
  EXPECT_EQ(arbiter_.WorkerStarted(job), int64_t{3} << 30);
}

}  // namespace
}  // namespace sluice::executor
