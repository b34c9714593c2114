#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>

#include "base/memory_group.h"

namespace sluice::executor {

// A control group with a limit of memory, below this process's own.
class LimitedGroup {
 public:
  explicit LimitedGroup(const std::string& limit) {
    const std::optional<MemoryGroup> own = MemoryGroup::Of(getpid());
    if (!own.has_value()) {
      return;
    }
    const std::string folder = own->folder() + "/sluice-test-" + std::to_string(getpid());
    std::error_code error;
    if (!std::filesystem::create_directory(folder, error)) {
      return;
    }
    folder_ = folder;
    for (const char* file : {"/memory.limit_in_bytes", "/memory.max"}) {
      made_ = made_ || (std::filesystem::exists(folder_ + file) &&
                        (std::ofstream(folder_ + file) << limit).flush().good());
    }
  }
  ~LimitedGroup() {
    std::error_code error;
    std::filesystem::remove(folder_, error);
  }
  LimitedGroup(const LimitedGroup&) = delete;
  LimitedGroup& operator=(const LimitedGroup&) = delete;

  bool made() const { return made_; }
  std::string processes() const { return folder_ + "/cgroup.procs"; }

 private:
  std::string folder_;
  bool made_ = false;
};

}  // namespace sluice::executor
