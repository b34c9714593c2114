#include "base/memory_group.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

namespace sluice {
namespace {

// Version 1 writes a number near the largest one where there is no limit.
constexpr int64_t kNoLimit = int64_t{1} << 60;

// From a line "4:memory:/a/b" or "0::/a/b" of /proc/PID/cgroup: the path, if the line is that of
// the controller.
std::optional<std::string> PathIn(const std::string& line, std::string_view controller) {
  const size_t first = line.find(':');
  const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
  if (second == std::string::npos) {
    return std::nullopt;
  }
  const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
  return controllers.find("," + std::string(controller) + ",") == std::string::npos
             ? std::nullopt
             : std::optional(line.substr(second + 1));
}

bool Exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

// Whether the process is on its way out of its group, by the flags in /proc/PID/stat: for a while
// it still seems to run.
bool IsEnding(const std::string& process) {
  constexpr uint64_t kExiting = 4;  // the kernel's PF_EXITING
  std::ifstream file(process + "/stat");
  std::string line;
  std::getline(file, line);
  // Its name, in parentheses, may contain anything.
  std::istringstream fields(line.substr(std::min(line.rfind(')') + 1, line.size())));
  std::string state;
  int64_t parent = 0, group = 0, session = 0, terminal = 0, foreground = 0;
  uint64_t flags = 0;
  fields >> state >> parent >> group >> session >> terminal >> foreground >> flags;
  return (flags & kExiting) != 0;
}

}  // namespace

std::optional<MemoryGroup> MemoryGroup::Of(int process, const std::string& processes,
                                           const std::string& groups) {
  std::ifstream lines(processes + "/" + std::to_string(process) + "/cgroup");
  std::optional<std::string> first_version, second_version;
  for (std::string line; std::getline(lines, line);) {
    if (auto path = PathIn(line, "memory")) {
      first_version = std::move(path);
    } else if (line.starts_with("0::")) {
      second_version = PathIn(line, "");
    }
  }
  if (IsEnding(processes + "/" + std::to_string(process))) {
    return std::nullopt;
  }
  const bool first = first_version.has_value();
  std::optional<std::string>& path = first ? first_version : second_version;
  if (!path.has_value() || path->ends_with(" (deleted)")) {
    return std::nullopt;
  }
  const std::string root = groups + (first ? "/memory" : "");
  const char* const counts = first ? "/memory.oom_control" : "/memory.events";
  // In a container the path may be the host's, and the root is the container's own group.
  std::string at = *path == "/" || !Exists(root + *path + counts) ? "" : *path;
  if (!Exists(root + at + counts)) {
    return std::nullopt;
  }
  std::vector<std::string> folders{root + at};
  while (!at.empty()) {
    at.resize(at.rfind('/'));
    folders.push_back(root + at);
  }
  return MemoryGroup(std::move(folders), first);
}

std::optional<int64_t> MemoryGroup::Limit() const {
  int64_t least = kNoLimit;
  for (const std::string& folder : folders_) {
    std::ifstream file(folder + (first_version_ ? "/memory.limit_in_bytes" : "/memory.max"));
    int64_t limit = 0;
    if (file >> limit) {  // or "max"
      least = std::min(least, limit);
    }
  }
  return least == kNoLimit ? std::nullopt : std::optional(least);
}

int64_t MemoryGroup::Kills() const {
  std::ifstream file(folder() + (first_version_ ? "/memory.oom_control" : "/memory.events"));
  std::string name;
  int64_t number = 0;
  while (file >> name >> number) {
    if (name == "oom_kill") {
      return number;
    }
  }
  return 0;
}

}  // namespace sluice
