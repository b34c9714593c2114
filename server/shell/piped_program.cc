#include "server/shell/piped_program.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace sluice::server {
std::unique_ptr<PipedProgram> PipedProgram::Start(const std::string& command) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return nullptr;
  }
  // This process blocks and ignores signals; its children must not inherit that.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t signals;
  sigemptyset(&signals);
  posix_spawnattr_setsigmask(&attributes, &signals);
  sigaddset(&signals, SIGPIPE);
  sigaddset(&signals, SIGINT);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO);
  std::string text = command;
  char shell[] = "sh";
  char option[] = "-c";
  char* arguments[] = {shell, option, text.data(), nullptr};
  pid_t pid = -1;
  const int failed = posix_spawn(&pid, "/bin/sh", &actions, &attributes, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  close(ends[0]);
  std::FILE* const input = failed == 0 ? fdopen(ends[1], "w") : nullptr;
  if (input == nullptr) {
    close(ends[1]);
    errno = failed == 0 ? errno : failed;
    return nullptr;
  }
  return std::unique_ptr<PipedProgram>(new PipedProgram(input, pid));
}

PipedProgram::~PipedProgram() {
  Close();
}

int PipedProgram::Close() {
  if (input_ == nullptr) {
    return 0;
  }
  std::fclose(input_);
  input_ = nullptr;
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace sluice::server
