#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sluice {

// The control group (version 1 or 2) that counts a process's memory. Its files are read at every
// call.
class MemoryGroup {
 public:
  // nullopt: the system has no such groups, the group is gone, or the process is ending, and may
  // have left it. `processes` and `groups`: where /proc and the
  // groups are mounted.
  static std::optional<MemoryGroup> Of(int process, const std::string& processes = "/proc",
                                       const std::string& groups = "/sys/fs/cgroup");

  // The bytes that its processes may take together, by its own limit or that of a group around it;
  // nullopt: as many as the machine has.
  std::optional<int64_t> Limit() const;
  // How many processes of the group the kernel has killed for lack of memory, since there is the
  // group.
  int64_t Kills() const;
  // Identifies the group.
  const std::string& folder() const { return folders_.front(); }

 private:
  MemoryGroup(std::vector<std::string> folders, bool first_version)
      : folders_(std::move(folders)), first_version_(first_version) {}

  std::vector<std::string> folders_;  // the group's, and those of the groups around it
  bool first_version_;
};

}  // namespace sluice
