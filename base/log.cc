#include "base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>

namespace sluice::log {
namespace {

std::atomic<int> lowest_level{static_cast<int>(Level::kOff)};

spdlog::level::level_enum ToSpdlog(Level level) {
  switch (level) {
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarn:
      return spdlog::level::warn;
    case Level::kError:
      return spdlog::level::err;
    case Level::kOff:
      break;
  }
  return spdlog::level::off;
}

}  // namespace

void Start(std::string_view process, Level level) {
  auto logger = spdlog::stderr_logger_mt(std::string(process));
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e %l process=%n %v");
  logger->set_level(ToSpdlog(level));
  spdlog::set_default_logger(logger);
  lowest_level = static_cast<int>(level);
}

bool Enabled(Level level) {
  return static_cast<int>(level) >= lowest_level;
}

void Write(Level level, const std::string& line) {
  spdlog::log(ToSpdlog(level), "{}", line);
}

}  // namespace sluice::log
