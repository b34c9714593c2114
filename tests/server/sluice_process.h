#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>

namespace sluice {

// The binary as started by a shell.
struct ShellOutcome {
  int exit_code = -1;
  std::string output;
};

// Runs a command of /bin/sh and returns its standard output.
inline ShellOutcome RunInShell(const std::string& command) {
  ShellOutcome outcome;
  FILE* const pipe = popen(command.c_str(), "r");
  char buffer[4096];
  for (size_t size = 0; (size = fread(buffer, 1, sizeof buffer, pipe)) > 0;) {
    outcome.output.append(buffer, size);
  }
  const int status = pclose(pipe);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

// A command of /bin/sh that runs until it is killed; put "exec" in front of its last program.
class BackgroundProcess {
 public:
  explicit BackgroundProcess(const std::string& command) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(ends[1], STDOUT_FILENO);
      close(ends[0]);
      close(ends[1]);
      execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      _exit(127);
    }
    close(ends[1]);
    output_ = fdopen(ends[0], "r");
  }
  BackgroundProcess(const BackgroundProcess&) = delete;
  BackgroundProcess& operator=(const BackgroundProcess&) = delete;
  ~BackgroundProcess() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    fclose(output_);
  }
  pid_t pid() const { return pid_; }
  // Waits for its next line of output, and returns it without its line end.
  std::string ReadLine() {
    char line[4096];
    if (fgets(line, sizeof line, output_) == nullptr) {
      return "";
    }
    std::string text = line;
    return text.substr(0, text.find('\n'));
  }

 private:
  pid_t pid_ = -1;
  FILE* output_ = nullptr;
};

}  // namespace sluice
