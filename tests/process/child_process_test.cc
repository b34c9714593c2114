#include "executor/processes/child_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <string>
#include <thread>

extern char** environ;  // NOLINT: POSIX declares it nowhere

namespace sluice::executor {
namespace {

// The exit code of a process whose launcher died before the process could set its death signal; -1:
// it still exists after ten seconds. Meanwhile it waits for its configuration.
int ExitWithoutLauncher(const std::string& role) {
  int config[2], launcher[2];
  EXPECT_EQ(pipe2(config, O_CLOEXEC), 0);
  EXPECT_EQ(pipe2(launcher, O_CLOEXEC), 0);
  close(launcher[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  // Move both away first: each may have the number that the other needs.
  const int config_copy = fcntl(config[0], F_DUPFD_CLOEXEC, 10);
  const int launcher_copy = fcntl(launcher[0], F_DUPFD_CLOEXEC, 10);
  posix_spawn_file_actions_adddup2(&actions, config_copy, kConfigDescriptor);
  posix_spawn_file_actions_adddup2(&actions, launcher_copy, kLauncherDescriptor);
  std::string binary = SLUICE_BINARY, command = role;
  char* arguments[] = {binary.data(), command.data(), nullptr};
  pid_t child = 0;
  EXPECT_EQ(posix_spawn(&child, binary.c_str(), &actions, nullptr, arguments, environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  for (const int descriptor : {config[0], launcher[0], config_copy, launcher_copy}) {
    close(descriptor);
  }
  int status = 0;
  bool ended = false;
  for (int i = 0; i < 1'000 && !ended; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ended = waitpid(child, &status, WNOHANG) == child;
  }
  if (!ended) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  close(config[1]);
  if (!ended) {
    return -1;
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

TEST(ChildProcess, NobodyOutlivesALauncherThatDiedBeforeTheyBegan) {
  EXPECT_EQ(ExitWithoutLauncher("master"), 128 + SIGTERM);
  EXPECT_EQ(ExitWithoutLauncher("worker"), 128 + SIGKILL);
  EXPECT_EQ(ExitWithoutLauncher("ps"), 128 + SIGKILL);
}

}  // namespace
}  // namespace sluice::executor
