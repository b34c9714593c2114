#include "catalog/sql/timestamp_text.h"

#include <fmt/core.h>

#include <chrono>

#include "base/value.h"

namespace sluice::catalog {
namespace {

constexpr int64_t kMicrosPerSecond = 1'000'000;
constexpr size_t kMaxYearDigits = 7;  // PostgreSQL's dates end with the year 5874897

// Removes the first `least`..`most` digits from `text`.
bool TakeNumber(std::string_view& text, size_t least, size_t most, int64_t* number) {
  size_t digits = 0;
  *number = 0;
  while (digits < most && digits < text.size() && text[digits] >= '0' && text[digits] <= '9') {
    *number = *number * 10 + (text[digits] - '0');
    ++digits;
  }
  text.remove_prefix(digits);
  return digits >= least;
}

bool TakeChar(std::string_view& text, char c) {
  if (text.empty() || text.front() != c) {
    return false;
  }
  text.remove_prefix(1);
  return true;
}

// "HH:MM[:SS[.ffffff]]" as microseconds.
bool TakeTime(std::string_view& text, int64_t* micros) {
  int64_t hours = 0;
  int64_t minutes = 0;
  int64_t seconds = 0;
  int64_t fraction = 0;
  if (!TakeNumber(text, 1, 2, &hours) || !TakeChar(text, ':') ||
      !TakeNumber(text, 2, 2, &minutes)) {
    return false;
  }
  if (TakeChar(text, ':')) {
    if (!TakeNumber(text, 2, 2, &seconds)) {
      return false;
    }
    if (TakeChar(text, '.')) {
      int64_t unit = kMicrosPerSecond / 10;
      while (!text.empty() && text.front() >= '0' && text.front() <= '9') {
        fraction += (text.front() - '0') * unit;
        unit /= 10;  // digits past the sixth are below a microsecond
        text.remove_prefix(1);
      }
    }
  }
  if (hours > 24 || minutes > 59 || seconds > 60) {
    return false;
  }
  *micros = ((hours * 60 + minutes) * 60 + seconds) * kMicrosPerSecond + fraction;
  return true;
}

// "Z" or "+HH[[:]MM[:SS]]": microseconds to subtract.
bool TakeZone(std::string_view& text, int64_t* micros) {
  *micros = 0;
  if (TakeChar(text, 'Z') || TakeChar(text, 'z')) {
    return true;
  }
  int64_t sign = 1;
  if (TakeChar(text, '-')) {
    sign = -1;
  } else if (!TakeChar(text, '+')) {
    return true;
  }
  int64_t parts[3] = {0, 0, 0};
  if (!TakeNumber(text, 2, 2, &parts[0])) {
    return false;
  }
  for (int i = 1; i < 3 && !text.empty() && text.front() != ' '; ++i) {
    TakeChar(text, ':');
    if (!TakeNumber(text, 2, 2, &parts[i])) {
      return false;
    }
  }
  *micros = sign * ((parts[0] * 60 + parts[1]) * 60 + parts[2]) * kMicrosPerSecond;
  return true;
}

}  // namespace

std::optional<int64_t> ParseTimestamp(std::string_view text) {
  while (!text.empty() && text.front() == ' ') {
    text.remove_prefix(1);
  }
  while (!text.empty() && text.back() == ' ') {
    text.remove_suffix(1);
  }
  if (text == "infinity") {
    return kTimestampInfinity;
  }
  if (text == "-infinity") {
    return kTimestampMinusInfinity;
  }
  int64_t year = 0;
  int64_t month = 0;
  int64_t day = 0;
  if (!TakeNumber(text, 4, kMaxYearDigits, &year) || !TakeChar(text, '-') ||
      !TakeNumber(text, 2, 2, &month) || !TakeChar(text, '-') || !TakeNumber(text, 2, 2, &day)) {
    return std::nullopt;
  }
  int64_t time = 0;
  int64_t zone = 0;
  const bool before_christ_after_date = text == " BC";
  if (!text.empty() && !before_christ_after_date) {
    if (!TakeChar(text, ' ') && !TakeChar(text, 'T')) {
      return std::nullopt;
    }
    if (!TakeTime(text, &time) || !TakeZone(text, &zone)) {
      return std::nullopt;
    }
  }
  if (text == " BC") {
    year = 1 - year;
  } else if (!text.empty()) {
    return std::nullopt;
  }
  // The calendar repeats every 400 years; std::chrono's years end with 32767.
  constexpr int64_t kDaysOf400Years = 146'097;
  const int64_t like = 2'000 + (year % 400 + 400) % 400;
  const std::chrono::year_month_day date(std::chrono::year(static_cast<int>(like)),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day)));
  if (!date.ok()) {
    return std::nullopt;
  }
  const int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  return TimestampOf(days + (year - like) / 400 * kDaysOf400Years, time - zone);
}

int64_t TimestampOf(int64_t days, int64_t micros) {
  constexpr int64_t kMicrosPerDay = 86'400 * kMicrosPerSecond;
  const bool before = days < 0;
  if (before) {
    // Counted from the end of the day: the first day of the 64-bit range begins before that range.
    ++days;
    micros -= kMicrosPerDay;
  }
  int64_t timestamp = 0;
  if (__builtin_mul_overflow(days, kMicrosPerDay, &timestamp) ||
      __builtin_add_overflow(timestamp, micros, &timestamp)) {
    return before ? kTimestampMinusInfinity : kTimestampInfinity;
  }
  return timestamp;
}

std::string TimestampLiteral(int64_t micros) {
  if (micros == kTimestampInfinity) {
    return "infinity";
  }
  if (micros == kTimestampMinusInfinity) {
    return "-infinity";
  }
  return FormatTimestamp(micros);
}

}  // namespace sluice::catalog
