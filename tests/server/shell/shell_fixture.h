#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace sluice::server {

inline std::string ReadAll(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The binary itself, as started by a person or a script.
class ShellTest : public ::testing::Test {
 protected:
  struct Outcome {
    int exit_code = -1;
    std::string out;
    std::string err;
  };

  void SetUp() override {
    std::string folder = (std::filesystem::temp_directory_path() / "sluice_shell_XXXXXX").string();
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    source_ = "sqlite:" + folder + "/test.db";
  }
  void TearDown() override {
    std::error_code error;
    std::filesystem::remove_all(folder_, error);
  }

  pid_t Start(std::vector<std::string> arguments, const std::string& input = "") {
    std::ofstream(folder_ / "in", std::ios::binary) << input;
    const pid_t child = fork();
    if (child == 0) {
      FILE* unused = freopen((folder_ / "in").c_str(), "r", stdin);
      unused = freopen((folder_ / "out").c_str(), "w", stdout);
      unused = freopen((folder_ / "err").c_str(), "w", stderr);
      static_cast<void>(unused);
      Execute(std::move(arguments));
    }
    return child;
  }
  [[noreturn]] void Execute(std::vector<std::string> arguments) const {
    setenv("HOME", folder_.c_str(), 1);
    arguments.insert(arguments.begin(), SLUICE_BINARY);
    std::vector<char*> argv;
    for (std::string& argument : arguments) {
      argv.push_back(argument.data());
    }
    argv.push_back(nullptr);
    execv(argv[0], argv.data());
    _exit(127);
  }
  Outcome Wait(pid_t child) const {
    int status = 0;
    waitpid(child, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
            ReadAll(folder_ / "out"), ReadAll(folder_ / "err")};
  }
  Outcome Run(std::vector<std::string> arguments, const std::string& input = "") {
    return Wait(Start(std::move(arguments), input));
  }
  Outcome Sql(std::vector<std::string> arguments, const std::string& input = "") {
    arguments.insert(arguments.begin(), {"sql", "--source", source_});
    return Run(std::move(arguments), input);
  }

  std::filesystem::path folder_;
  std::string source_;
};

// A terminal: what a person types and sees.
class TerminalTest : public ShellTest {
 protected:
  // With this size and further environment variables.
  void Open(unsigned short columns = 80, unsigned short lines = 24,
            const std::map<std::string, std::string>& environment = {},
            std::vector<std::string> arguments = {}) {
    const winsize size{lines, columns, 0, 0};
    child_ = forkpty(&terminal_, nullptr, nullptr, &size);
    if (child_ == 0) {
      setenv("TERM", "dumb", 1);
      setenv("PAGER", "", 1);
      for (const auto& [name, value] : environment) {
        setenv(name.c_str(), value.c_str(), 1);
      }
      if (chdir(folder_.c_str()) != 0) {
        _exit(126);
      }
      if (arguments.empty()) {
        arguments = {"sql", "--source", source_};
      }
      Execute(std::move(arguments));
    }
  }
  void Type(const std::string& text) {
    ASSERT_EQ(write(terminal_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  // Reads until `text` has been shown; false if the shell ends or is silent for long.
  bool WaitFor(const std::string& text) {
    for (;;) {
      const size_t at = shown_.find(text);
      if (at != std::string::npos) {
        shown_.erase(0, at + text.size());
        return true;
      }
      if (!ReadMore()) {
        return false;
      }
    }
  }
  // Waits for more output from the shell.
  bool ReadMore() {
    pollfd ready{terminal_, POLLIN, 0};
    char buffer[4096];
    if (poll(&ready, 1, 20'000) != 1) {
      return false;
    }
    const ssize_t size = read(terminal_, buffer, sizeof buffer);
    if (size <= 0) {
      return false;
    }
    shown_.append(buffer, static_cast<size_t>(size));
    return true;
  }
  int ExitCode() {
    int status = 0;
    waitpid(child_, &status, 0);
    close(terminal_);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  int terminal_ = -1;
  pid_t child_ = -1;
  std::string shown_;
};

}  // namespace sluice::server
