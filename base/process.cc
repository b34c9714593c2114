#include "base/process.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

namespace sluice {
namespace {

std::string Place() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::error_code error;
  const std::filesystem::path space = std::filesystem::read_symlink("/proc/self/ns/pid", error);
  return fmt::format("{} {}", boot, space.string());
}

// When the process started, in clock ticks since boot; nullopt: no such process.
std::optional<int64_t> StartOf(int64_t pid) {
  constexpr int kFieldsAfterName = 20;  // proc(5): the name is field 2, starttime is field 22
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
      return std::nullopt;  // it has ended
    }
  }
  return std::strtoll(field.c_str(), nullptr, 10);
}

}  // namespace

ProcessIdentity CurrentProcess() {
  return {Place(), getpid(), StartOf(getpid()).value_or(0)};
}

ProcessState FindProcess(const ProcessIdentity& process) {
  if (process.place != Place()) {
    return ProcessState::kElsewhere;
  }
  return StartOf(process.pid) == process.started ? ProcessState::kRunning : ProcessState::kGone;
}

}  // namespace sluice
