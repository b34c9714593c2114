#include "base/process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

namespace sluice {
namespace {

TEST(Process, IsFoundWhileItRuns) {
  ProcessIdentity self = CurrentProcess();
  EXPECT_EQ(self.pid, getpid());
  EXPECT_EQ(FindProcess(self), ProcessState::kRunning);
  self.started += 1;
  EXPECT_EQ(FindProcess(self), ProcessState::kGone);
  self.place = "another machine";
  EXPECT_EQ(FindProcess(self), ProcessState::kElsewhere);
}

TEST(Process, HasDescendants) {
  const pid_t child = fork();
  if (child == 0) {
    char title[] = "a title";
    char seconds[] = "600";
    char* arguments[] = {title, seconds, nullptr};
    execv("/bin/sleep", arguments);
    _exit(127);
  }
  const auto found = [&] {
    const auto all = DescendantsOf(getpid());
    return std::any_of(all.begin(), all.end(), [child](const TitledProcess& process) {
      return process.pid == child && process.title == "a title";
    });
  };
  while (!found() && waitpid(child, nullptr, WNOHANG) == 0) {  // until it has become sleep
  }
  EXPECT_TRUE(found());
  const auto of_parent = DescendantsOf(getppid());
  EXPECT_TRUE(std::any_of(of_parent.begin(), of_parent.end(),
                          [child](const TitledProcess& process) { return process.pid == child; }));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_FALSE(found());
}

}  // namespace
}  // namespace sluice
