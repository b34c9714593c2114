#include <fmt/core.h>

#include <chrono>
#include <limits>

#include "models/features/time_part_internal.h"

namespace sluice::models {
namespace {

struct NamedPart {
  std::string_view name;
  TimePart part;
  uint32_t values;
};
constexpr NamedPart kParts[] = {
    {"minute", TimePart::kMinute, 60},  {"hour", TimePart::kHour, 24},
    {"weekday", TimePart::kWeekday, 7}, {"day", TimePart::kDay, 31},
    {"month", TimePart::kMonth, 12},    {"quarter", TimePart::kQuarter, 4}};

}  // namespace

Result<TimePart> FindTimePart(std::string_view name) {
  for (const NamedPart& part : kParts) {
    if (part.name == name) {
      return part.part;
    }
  }
  return InvalidArgument(fmt::format(
      "'{}' is no part of a time: expected minute, hour, weekday, day, month or quarter", name));
}

uint32_t TimePartValues(TimePart part) {
  for (const NamedPart& known : kParts) {
    if (known.part == part) {
      return known.values;
    }
  }
  return 0;
}

std::optional<uint32_t> PartOfTime(TimePart part, int64_t micros) {
  using std::chrono::floor;
  // So close to the ends that their days would overflow.
  constexpr int64_t kDay = 86'400'000'000;
  if (micros < std::numeric_limits<int64_t>::min() + kDay ||
      micros > std::numeric_limits<int64_t>::max() - kDay) {
    return std::nullopt;
  }
  const std::chrono::sys_time<std::chrono::microseconds> time{std::chrono::microseconds(micros)};
  const auto day = floor<std::chrono::days>(time);
  const auto minutes = static_cast<uint32_t>(floor<std::chrono::minutes>(time - day).count());
  switch (part) {
    case TimePart::kMinute:
      return minutes % 60;
    case TimePart::kHour:
      return minutes / 60;
    case TimePart::kWeekday:
      return std::chrono::weekday(day).iso_encoding() - 1;  // Monday is 0
    case TimePart::kDay:
      return static_cast<unsigned>(std::chrono::year_month_day(day).day()) - 1;
    case TimePart::kMonth:
      return static_cast<unsigned>(std::chrono::year_month_day(day).month()) - 1;
    case TimePart::kQuarter:
      return (static_cast<unsigned>(std::chrono::year_month_day(day).month()) - 1) / 3;
  }
  return std::nullopt;
}

}  // namespace sluice::models
