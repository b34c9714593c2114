#include "server/config/signals.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <csignal>
#include <mutex>

namespace sluice::server {
namespace {

// Runs `body` in a child process, whose signals do not disturb the other tests.
int ExitCodeOf(int (*body)()) {
  const pid_t child = fork();
  if (child == 0) {
    _exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool WaitForStop(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock<std::mutex> lock(mutex);
  wake.wait_for(lock, stop, std::chrono::seconds(10), [] { return false; });
  return stop.stop_requested();
}

TEST(Signals, CtrlCStopsTheScriptThatRuns) {
  EXPECT_EQ(ExitCodeOf([] {
              BlockSignals();
              Interrupts interrupts;
              const std::stop_token stop = interrupts.BeginScript();
              kill(getpid(), SIGINT);
              if (!WaitForStop(stop)) {
                return 1;
              }
              interrupts.EndScript();
              // The next script starts afresh.
              return interrupts.BeginScript().stop_requested() || interrupts.terminate_requested()
                         ? 2
                         : 0;
            }),
            0);
}

TEST(Signals, CtrlCAtThePromptWakesTheEditor) {
  EXPECT_EQ(ExitCodeOf([] {
              BlockSignals();
              Interrupts interrupts;
              kill(getpid(), SIGINT);
              pollfd wake{interrupts.wake_descriptor(), POLLIN, 0};
              if (poll(&wake, 1, 10'000) != 1) {
                return 1;
              }
              interrupts.ClearWake();
              return poll(&wake, 1, 0);
            }),
            0);
}

TEST(Signals, SigtermStopsTheScriptAndEndsTheShell) {
  EXPECT_EQ(ExitCodeOf([] {
              BlockSignals();
              Interrupts interrupts;
              const std::stop_token stop = interrupts.BeginScript();
              kill(getpid(), SIGTERM);
              if (!WaitForStop(stop) || !interrupts.terminate_requested()) {
                return 1;
              }
              interrupts.EndScript();
              return interrupts.BeginScript().stop_requested() ? 0 : 2;
            }),
            0);
}

}  // namespace
}  // namespace sluice::server
