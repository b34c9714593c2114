#include "base/machine.h"

#include <algorithm>
#include <fstream>

#include <sys/resource.h>
#include <unistd.h>

namespace sluice {
namespace {

// The number in a control group's file; nothing where there is none, or "max".
void Lower(const char* path, int64_t* bytes) {
  std::ifstream file(path);
  int64_t limit = 0;
  if (file >> limit && limit > 0) {
    *bytes = std::min(*bytes, limit);
  }
}

}  // namespace

int64_t MachineMemory() {
  int64_t bytes = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  Lower("/sys/fs/cgroup/memory.max", &bytes);
  Lower("/sys/fs/cgroup/memory/memory.limit_in_bytes", &bytes);
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    bytes = std::min(bytes, static_cast<int64_t>(limit.rlim_cur));
  }
  return bytes;
}

}  // namespace sluice
