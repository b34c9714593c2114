#include "base/machine.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <thread>

#include <sys/resource.h>
#include <unistd.h>

namespace sluice {
namespace {

// Lowers *bytes to the number in a control group's file; leaves it if there is no file, or "max".
void Lower(const char* path, int64_t* bytes) {
  std::ifstream file(path);
  int64_t limit = 0;
  if (file >> limit && limit > 0) {
    *bytes = std::min(*bytes, limit);
  }
}

// The processors that a control group's quota allows (quota divided by period), from version 2 of
// control groups or version 1; 0: no quota.
double Quota(const std::string& groups) {
  double quota = 0;
  double period = 0;
  std::ifstream both(groups + "/cpu.max");
  if (!(both >> quota >> period)) {  // "max", or the first version
    quota = period = 0;
    std::ifstream(groups + "/cpu/cpu.cfs_quota_us") >> quota;
    std::ifstream(groups + "/cpu/cpu.cfs_period_us") >> period;
  }
  return quota > 0 && period > 0 ? quota / period : 0;
}

}  // namespace

unsigned MachineProcessors() {
  static const unsigned processors = MachineProcessors("/sys/fs/cgroup");
  return processors;
}

unsigned MachineProcessors(const std::string& groups) {
  const unsigned all = std::max(1U, std::thread::hardware_concurrency());
  const double quota = Quota(groups);
  return quota > 0 && quota < all ? static_cast<unsigned>(std::ceil(quota)) : all;
}

int64_t PeakMemory() {
  rusage usage{};
  return getrusage(RUSAGE_SELF, &usage) == 0 ? int64_t{usage.ru_maxrss} * 1024 : 0;
}

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
