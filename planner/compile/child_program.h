#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "base/status.h"

namespace sluice::planner {

struct ProgramLimits {
  double seconds = 60;                       // of the clock, and of processor time
  int64_t memory_bytes = int64_t{4} << 30;   // of address space
  int64_t output_bytes = int64_t{64} << 20;  // what it prints and answers, together
  bool contained = false;  // not started where the kernel allows it no namespaces of its own
};

struct ProgramEnd {
  enum class How { kExited, kKilled, kOutOfTime, kPrintedTooMuch };
  How how = How::kExited;
  int code = 0;         // kExited: the exit code; kKilled: the signal
  std::string answer;   // what it wrote to descriptor 3
  std::string printed;  // the end of what it printed
};

// Runs a program that is not trusted: in a process group of its own, which is killed at the end;
// with an empty environment; with no descriptors but standard input, which holds `input`, standard
// output and error, and 3 for its answer; without a network, and with a file system that it cannot
// change, where the kernel allows namespaces; unable to write to files. It has the rights of this
// process's user otherwise. Fails if it cannot be started, or was stopped. Thread-safe.
Result<ProgramEnd> RunChildProgram(const std::vector<std::string>& command,
                                   const std::string& input, const ProgramLimits& limits,
                                   const std::stop_token& stop);

// Whether the kernel allows programs the namespaces that contain them, for this process's user.
bool CanContainPrograms();

}  // namespace sluice::planner
