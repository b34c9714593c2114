#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sluice {

// A process, distinguishable from later ones with the same number.
struct ProcessIdentity {
  std::string place;  // the boot and the container in which the number is valid
  int64_t pid = 0;
  int64_t started = 0;  // clock ticks since boot
};

ProcessIdentity CurrentProcess();

enum class ProcessState : int { kRunning = 1, kGone = 2, kElsewhere = 3 };
// kElsewhere: a process of another machine, boot or container, whose state cannot be known here.
ProcessState FindProcess(const ProcessIdentity& process);

struct TitledProcess {
  int64_t pid = 0;
  std::string title;  // its first argument, as `ps` shows it
};
// The processes below this one that run now, in the order of their numbers.
std::vector<TitledProcess> DescendantsOf(int64_t pid);

}  // namespace sluice
