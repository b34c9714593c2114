#pragma once

#include <cstdint>
#include <string>

namespace sluice {

// Bytes of memory available to this process: the minimum of the machine's memory, its control
// group's limit and its own limit (ulimit -v). Determined anew at every call.
int64_t MachineMemory();

// Bytes that this process has had resident at most.
int64_t PeakMemory();

// Processors available to this process: those that it may run on, or fewer if its control group has
// a quota; rounded up, at least 1. Determined once, at the first call.
unsigned MachineProcessors();
// The same, determined anew; `groups`: where the control groups are mounted.
unsigned MachineProcessors(const std::string& groups);

}  // namespace sluice
