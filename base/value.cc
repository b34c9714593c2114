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
  using std::chrono::days;
  constexpr int64_t kMicrosPerDay = 86'400'000'000;
  // The calendar repeats every 400 years; std::chrono's years end with 32767.
  constexpr int64_t kDaysOf400Years = 146'097;
  const auto floor_divide = [](int64_t number, int64_t by) {
    return number / by - (number % by < 0 ? 1 : 0);
  };
  const int64_t day = floor_divide(micros, kMicrosPerDay);
  const int64_t cycle = floor_divide(day, kDaysOf400Years);
  const std::chrono::year_month_day date(
      std::chrono::sys_days(days(day - cycle * kDaysOf400Years)));
  const int64_t year = static_cast<int>(date.year()) + cycle * 400;
  // Not below the smallest number, as day * kMicrosPerDay might be.
  const int64_t of_day = (micros % kMicrosPerDay + kMicrosPerDay) % kMicrosPerDay;
  const std::chrono::hh_mm_ss clock{std::chrono::microseconds(of_day)};
  std::string text =
      fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}", year > 0 ? year : 1 - year,
                  static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                  clock.hours().count(), clock.minutes().count(), clock.seconds().count());
  if (clock.subseconds().count() != 0) {
    text += fmt::format(".{:06}", clock.subseconds().count());
  }
  if (year <= 0) {
    text += " BC";
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
