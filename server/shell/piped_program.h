#pragma once

#include <cstdio>
#include <memory>
#include <string>

namespace sluice::server {

// A command of /bin/sh that reads what is written to it: a pager, or the target of \o |command. It
// receives the terminal's signals as any program does. Not thread-safe.
class PipedProgram {
 public:
  // nullptr: it could not be started; see errno.
  static std::unique_ptr<PipedProgram> Start(const std::string& command);
  ~PipedProgram();
  PipedProgram(const PipedProgram&) = delete;
  PipedProgram& operator=(const PipedProgram&) = delete;

  std::FILE* input() { return input_; }
  // Closes its input and waits for its end. Returns its exit code; 127: no such command.
  int Close();

 private:
  PipedProgram(std::FILE* input, int pid) : input_(input), pid_(pid) {}
  std::FILE* input_;
  int pid_;
};

}  // namespace sluice::server
