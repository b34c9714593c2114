#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <utility>

namespace sluice::log {

enum class Level : int { kDebug = 0, kInfo = 1, kWarn = 2, kError = 3, kOff = 4 };

// Process-wide: the process's name in each line ("worker-3") and the lowest level that is written.
// Call once, from main. Lines go to standard error. Thread-safe afterwards.
void Start(std::string_view process, Level level);
bool Enabled(Level level);
// Control characters in the line are spelled out, so that it stays one.
void Write(Level level, const std::string& line);
// A value that somebody else chose, such as a name or a statement: in quotes if it could be taken
// for more than one value.
std::string Field(std::string_view text);

// key=value text: log::Info("worker joined job={} worker={}", job, id).
// Error: a person must act. Warn: retried. Info: life-cycle events. Debug: the rest.
template <typename... Args>
void Debug(fmt::format_string<Args...> format, Args&&... args) {
  if (Enabled(Level::kDebug)) {
    Write(Level::kDebug, fmt::format(format, std::forward<Args>(args)...));
  }
}
template <typename... Args>
void Info(fmt::format_string<Args...> format, Args&&... args) {
  if (Enabled(Level::kInfo)) {
    Write(Level::kInfo, fmt::format(format, std::forward<Args>(args)...));
  }
}
// On record at every level but off: who logged in, which statement was run.
template <typename... Args>
void Record(fmt::format_string<Args...> format, Args&&... args) {
  if (Enabled(Level::kError)) {
    Write(Level::kInfo, fmt::format(format, std::forward<Args>(args)...));
  }
}
template <typename... Args>
void Warn(fmt::format_string<Args...> format, Args&&... args) {
  if (Enabled(Level::kWarn)) {
    Write(Level::kWarn, fmt::format(format, std::forward<Args>(args)...));
  }
}
template <typename... Args>
void Error(fmt::format_string<Args...> format, Args&&... args) {
  if (Enabled(Level::kError)) {
    Write(Level::kError, fmt::format(format, std::forward<Args>(args)...));
  }
}

}  // namespace sluice::log
