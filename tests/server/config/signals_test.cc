#include "server/config/signals.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <csignal>

namespace sluice::server {
namespace {

TEST(Interrupts, OneThatComesBetweenTwoScriptsStopsTheNext) {
  BlockSignals();
  Interrupts interrupts;
  EXPECT_FALSE(interrupts.BeginScript().stop_requested());
  interrupts.EndScript();
  kill(getpid(), SIGINT);
  pollfd raised = {interrupts.wake_descriptor(), POLLIN, 0};
  constexpr int kMillis = 60'000;
  ASSERT_EQ(poll(&raised, 1, kMillis), 1);
  EXPECT_TRUE(interrupts.BeginScript().stop_requested());
  interrupts.EndScript();
  interrupts.ClearWake();  // as the prompt does
  EXPECT_FALSE(interrupts.BeginScript().stop_requested());
}

}  // namespace
}  // namespace sluice::server
