#include "executor/pods/master_exit.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace sluice::executor {
namespace {

TEST(MasterExitTest, AMasterThatHoldsNothingExitsAtOnce) {
  MasterExit exit;
  EXPECT_FALSE(exit.told());
  exit.Wait();
  EXPECT_TRUE(exit.told());
}

TEST(MasterExitTest, ACaseThatIsOverHoldsNobody) {
  MasterExit exit;
  {
    const MasterExit::Condition never(exit, [] { return false; });
  }
  exit.Wait();
}

TEST(MasterExitTest, WhatIsHeldStaysUntilItMayGo) {
  MasterExit exit;
  std::atomic<bool> may = false, asked = false, begun = false;
  std::jthread training([&] {
    {
      const MasterExit::Condition holds(exit, [&] {
        asked = true;
        asked.notify_all();
        return may.load();
      });
      begun = true;
      begun.notify_all();
      asked.wait(false);  // its training ends meanwhile
    }
    EXPECT_TRUE(may);
  });
  begun.wait(false);
  std::jthread signal([&] {
    exit.Wait();
    EXPECT_TRUE(may);
  });
  asked.wait(false);
  may = true;
}

using MasterExitDeathTest = ::testing::Test;

// Of a pod that stays, 0 would mean that the job is over.
TEST_F(MasterExitDeathTest, TheExitCodeIsThatOfAPodThatGoesOrStays) {
  const auto leave = [](bool goes) {
    MasterExit exit;
    exit.AskIfPodGoes([goes] { return goes; });
    exit.LeaveToNext("evicted");
  };
  EXPECT_EXIT(leave(true), ::testing::ExitedWithCode(0), "evicted");
  EXPECT_EXIT(leave(false), ::testing::ExitedWithCode(MasterExit::kEvicted), "evicted");
}

}  // namespace
}  // namespace sluice::executor
