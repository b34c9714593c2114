#pragma once

#include <cstdint>
#include <string>

namespace sluice {

// A process, told from later ones that the system gives the same number.
struct ProcessIdentity {
  std::string place;  // the boot and the container in which the number means something
  int64_t pid = 0;
  int64_t started = 0;  // clock ticks since the boot
};

ProcessIdentity CurrentProcess();

enum class ProcessState : int { kRunning = 1, kGone = 2, kElsewhere = 3 };
// kElsewhere: a process of another machine, boot or container, of which nothing is known here.
ProcessState FindProcess(const ProcessIdentity& process);

}  // namespace sluice
