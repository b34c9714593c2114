#pragma once

#include <cstdint>
#include <string>

namespace sluice {

// Bytes of memory that this process may hope for: the least of what the machine has, what its
// control group may use and what its own limit (ulimit -v) leaves it. Asked anew at every call.
int64_t MachineMemory();

// Processors that this process may hope for: those that it may run on, or fewer where its control
// group has a quota; rounded up, at least 1. `groups`: where the control groups are mounted. Asked
// anew at every call.
unsigned MachineProcessors(const std::string& groups = "/sys/fs/cgroup");

}  // namespace sluice
