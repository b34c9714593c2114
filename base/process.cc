#include "base/process.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>

namespace sluice {
namespace {

std::string Place() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::error_code error;
  const std::filesystem::path space = std::filesystem::read_symlink("/proc/self/ns/pid", error);
  return fmt::format("{} {}", boot, space.string());
}

struct Stat {
  int64_t parent = 0;
  int64_t started = 0;  // clock ticks since boot
};

// nullopt: no such process, or it has ended.
std::optional<Stat> StatOf(int64_t pid) {
  constexpr int kParent = 1;            // proc(5): the name is field 2, ppid is field 4,
  constexpr int kFieldsAfterName = 20;  // starttime is field 22
  Stat stat;
  std::ifstream in(fmt::format("/proc/{}/stat", pid));
  std::ostringstream all;
  all << in.rdbuf();
  const std::string text = all.str();
  const size_t name_end = text.rfind(')');
  if (!in || name_end == std::string::npos) {
    return std::nullopt;
  }
  std::istringstream rest(text.substr(name_end + 1));
  std::string field;
  for (int i = 0; i < kFieldsAfterName; ++i) {
    rest >> field;
    if (i == 0 && (field == "Z" || field == "X")) {
      return std::nullopt;
    }
    if (i == kParent) {
      stat.parent = std::strtoll(field.c_str(), nullptr, 10);
    }
  }
  stat.started = std::strtoll(field.c_str(), nullptr, 10);
  return stat;
}

}  // namespace

ProcessIdentity CurrentProcess() {
  return {Place(), getpid(), StatOf(getpid()).value_or(Stat()).started};
}

ProcessState FindProcess(const ProcessIdentity& process) {
  if (process.place != Place()) {
    return ProcessState::kElsewhere;
  }
  const std::optional<Stat> now = StatOf(process.pid);
  return now.has_value() && now->started == process.started ? ProcessState::kRunning
                                                            : ProcessState::kGone;
}

std::vector<TitledProcess> DescendantsOf(int64_t pid) {
  std::map<int64_t, int64_t> parents;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const int64_t number = std::strtoll(entry.path().filename().c_str(), nullptr, 10);
    if (const std::optional<Stat> stat = number > 0 ? StatOf(number) : std::nullopt) {
      parents[number] = stat->parent;
    }
  }
  const auto descends = [&](int64_t from) {
    size_t steps = 0;  // the table is no snapshot, so that it could have a circle
    for (auto at = parents.find(from); at != parents.end() && ++steps <= parents.size();
         at = parents.find(at->second)) {
      if (at->second == pid) {
        return true;
      }
    }
    return false;
  };
  std::vector<TitledProcess> found;
  for (const auto& [number, parent] : parents) {
    if (descends(number)) {
      std::ifstream in(fmt::format("/proc/{}/cmdline", number), std::ios::binary);
      std::string title;
      std::getline(in, title, '\0');
      found.push_back({number, std::move(title)});
    }
  }
  return found;
}

}  // namespace sluice
