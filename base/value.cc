#include "base/value.h"

#include <fmt/core.h>

#include <chrono>
#include <cmath>

namespace sluice {

std::string_view DataTypeName(DataType type) {
  switch (type) {
    case DataType::kBool:
      return "boolean";
    case DataType::kInt64:
      return "bigint";
    case DataType::kDouble:
      return "double";
    case DataType::kText:
      return "text";
    case DataType::kTimestamp:
      return "timestamp";
    case DataType::kBytes:
      return "bytes";
  }
  return "unknown";
}

std::string FormatDouble(double value) {
  if (std::isnan(value)) {
    return "NaN";
  }
  if (std::isinf(value)) {
    return value > 0 ? "Infinity" : "-Infinity";
  }
  return fmt::format("{}", value);
}

std::string FormatTimestamp(int64_t micros) {
  using std::chrono::floor;
  const std::chrono::sys_time<std::chrono::microseconds> time{std::chrono::microseconds(micros)};
  const auto day = floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  std::string text =
      fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}", static_cast<int>(date.year()),
                  static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                  clock.hours().count(), clock.minutes().count(), clock.seconds().count());
  if (clock.subseconds().count() != 0) {
    text += fmt::format(".{:06}", clock.subseconds().count());
  }
  return text;
}

std::string FormatValue(const Value& value, DataType type) {
  if (const auto* flag = std::get_if<bool>(&value)) {
    return *flag ? "t" : "f";
  }
  if (const auto* number = std::get_if<int64_t>(&value)) {
    if (type == DataType::kTimestamp) {
      return FormatTimestamp(*number);
    }
    return fmt::format("{}", *number);
  }
  if (const auto* number = std::get_if<double>(&value)) {
    return FormatDouble(*number);
  }
  if (const auto* text = std::get_if<std::string>(&value)) {
    return *text;
  }
  return "";
}

}  // namespace sluice
