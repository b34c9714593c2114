#pragma once

#include <cstdio>
#include <memory>
#include <string>

namespace sluice::server {

// A command of /bin/sh that reads what is written to it: a pager, the target of \o |command. It
// hears the terminal's signals as any program does. Not thread-safe.
class PipedProgram {
 public:
  // nullptr: it could not be started, errno says why.
  static std::unique_ptr<PipedProgram> Start(const std::string& command);
  ~PipedProgram();
  PipedProgram(const PipedProgram&) = delete;
  PipedProgram& operator=(const PipedProgram&) = delete;

  std::FILE* input() { return input_; }
  // Tells it that nothing more comes, and waits for its end. Its exit code; 127: no such command.
  int Close();

 private:
  PipedProgram(std::FILE* input, int pid) : input_(input), pid_(pid) {}
  std::FILE* input_;
  int pid_;
};

}  // namespace sluice::server
