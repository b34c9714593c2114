#include "base/log.h"

#include "base/log_format.h"
#include "base/log_limit.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <atomic>

#include "base/utf8.h"

namespace sluice::log {
namespace {

std::atomic<int> lowest_level{static_cast<int>(Level::kOff)};
std::atomic<size_t> bytes_left{SIZE_MAX};
std::atomic<bool> in_json{false};

// Of a text without control characters: the content of a string in JSON.
std::string Escaped(const std::string& text) {
  std::string escaped;
  escaped.reserve(text.size());
  for (const char byte : text) {
    escaped += byte == '"' || byte == '\\' ? "\\" : "";
    escaped += byte;
  }
  return escaped;
}

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

std::string Field(std::string_view text) {
  const auto ends_value = [](char byte) {
    return byte == ' ' || byte == '"' || byte == '=' || byte == '\\';
  };
  const bool one_value = !text.empty() && std::none_of(text.begin(), text.end(), ends_value);
  if (one_value && Printable(text) == text) {
    return std::string(text);
  }
  std::string quoted = "\"";
  for (const char byte : text) {
    quoted += byte == '"' || byte == '\\' ? "\\" : "";
    quoted += byte;
  }
  return Printable(quoted) + '"';
}

void WriteAs(Format format) {
  in_json = format == Format::kJson;
}

void Start(std::string_view process, Level level) {
  auto logger = spdlog::stderr_logger_mt(std::string(process));
  logger->set_pattern(
      in_json ? R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l","process":"%n","message":"%v"})"
              : "%Y-%m-%dT%H:%M:%S.%e %l process=%n %v");
  logger->set_level(level == Level::kOff ? spdlog::level::off : spdlog::level::trace);
  spdlog::set_default_logger(logger);
  lowest_level = static_cast<int>(level);
}

bool Enabled(Level level) {
  return static_cast<int>(level) >= lowest_level;
}

void LimitTo(size_t bytes) {
  bytes_left = bytes;
}

void Write(Level level, const std::string& line) {
  size_t left = bytes_left;
  while (left != SIZE_MAX &&
         !bytes_left.compare_exchange_weak(left, left - std::min(left, line.size()))) {
  }
  if (left < line.size()) {
    if (left > 0) {
      spdlog::warn("the log ends here: it is as long as it may be");
    }
    return;
  }
  const std::string printable = Printable(line);
  spdlog::log(ToSpdlog(level), "{}", in_json ? Escaped(printable) : printable);
}

}  // namespace sluice::log
