#pragma once

#include <cstdint>

namespace sluice {

// Bytes of memory that this process may hope for: the least of what the machine has, what its
// control group may use and what its own limit (ulimit -v) leaves it. Asked anew at every call.
int64_t MachineMemory();

}  // namespace sluice
