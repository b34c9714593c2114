#include "base/lasting_threads.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

namespace sluice {
namespace {

TEST(LastingThreads, AreFew) {
  std::mutex mutex;
  std::set<std::thread::id> threads;
  std::atomic<int> calls = 0;
  for (int round = 0; round < 50; ++round) {
    std::vector<std::jthread> callers;
    for (int i = 0; i < 8; ++i) {
      callers.emplace_back([&] {
        OnLastingThread([&] {
          ++calls;
          const std::lock_guard lock(mutex);
          threads.insert(std::this_thread::get_id());
        });
      });
    }
  }
  EXPECT_EQ(calls, 400);
  EXPECT_LE(threads.size(), 4U);
  EXPECT_FALSE(threads.contains(std::this_thread::get_id()));
}

TEST(LastingThreads, HandTheExceptionToTheCaller) {
  EXPECT_THROW(OnLastingThread([] { throw std::runtime_error("no memory"); }), std::runtime_error);
  int calls = 0;
  OnLastingThread([&calls] { ++calls; });
  EXPECT_EQ(calls, 1);
}

TEST(LastingThreads, AreNotWaitedForInAForkedProcess) {
  OnLastingThread([] {});
  const pid_t child = fork();
  if (child == 0) {
    int calls = 0;
    OnLastingThread([&calls] { ++calls; });
    _exit(calls);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1);
}

}  // namespace
}  // namespace sluice
