#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "server/pgwire/sql/binary_forms_internal.h"

// Dates and timestamps.
namespace sluice::server::pgwire {
namespace {

constexpr int64_t kMicrosOfSecond = 1'000'000;
constexpr int64_t kMicrosOfHour = 3'600 * kMicrosOfSecond;
constexpr int64_t kMicrosOfDay = 24 * kMicrosOfHour;
constexpr int64_t kDaysFrom1970To2000 = 10'957;
// The calendar repeats every 400 years, and std::chrono's years end at 32767.
constexpr int64_t kYearsOfCycle = 400;
constexpr int64_t kDaysOfCycle = 146'097;
// 4714-11-24 BC to 5874897-12-31, and to the end of year 294276: the server's limits.
constexpr int32_t kFirstDate = -2'451'545;
constexpr int32_t kLastDate = 2'145'031'948;
constexpr int64_t kFirstTimestamp = -211'813'488'000'000'000;
constexpr int64_t kLastTimestamp = 9'223'371'331'199'999'999;
constexpr size_t kMostDigitsOfYear = 7;  // dates end with year 5874897

int64_t FloorDivide(int64_t number, int64_t by) {
  return number / by - (number % by < 0 ? 1 : 0);
}

bool TakeChar(std::string_view& text, char c) {
  if (!text.starts_with(c)) {
    return false;
  }
  text.remove_prefix(1);
  return true;
}

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

// "HH:MM:SS[.ffffff]".
bool TakeTime(std::string_view& text, int64_t* micros) {
  int64_t hours = 0;
  int64_t minutes = 0;
  int64_t seconds = 0;
  if (!TakeNumber(text, 2, 2, &hours) || !TakeChar(text, ':') ||
      !TakeNumber(text, 2, 2, &minutes) || !TakeChar(text, ':') ||
      !TakeNumber(text, 2, 2, &seconds)) {
    return false;
  }
  int64_t fraction = 0;
  if (TakeChar(text, '.')) {
    const size_t before = text.size();
    if (!TakeNumber(text, 1, 6, &fraction)) {
      return false;
    }
    for (size_t digits = before - text.size(); digits < 6; ++digits) {
      fraction *= 10;
    }
  }
  *micros = ((hours * 60 + minutes) * 60 + seconds) * kMicrosOfSecond + fraction;
  return hours <= 24 && minutes < 60 && seconds <= 60;
}

// "+HH[:MM[:SS]]", or nothing.
bool TakeZone(std::string_view& text, int64_t* micros) {
  *micros = 0;
  const bool west = text.starts_with('-');
  if (!TakeChar(text, '+') && !TakeChar(text, '-')) {
    return true;
  }
  int64_t seconds = 0;
  for (int64_t unit = 3600; unit > 0; unit /= 60) {
    int64_t number = 0;
    if (!TakeNumber(text, 2, 2, &number)) {
      return false;
    }
    seconds += number * unit;
    if (!TakeChar(text, ':')) {
      break;
    }
  }
  *micros = (west ? -seconds : seconds) * kMicrosOfSecond;
  return true;
}

// "HH:MM:SS[.f]" with any number of hours, as in intervals.
bool TakeLongTime(std::string_view& text, int64_t* micros) {
  constexpr size_t kMostDigitsOfHours = 10;
  std::string_view rest = text;
  int64_t hours = 0;
  if (!TakeNumber(rest, 2, kMostDigitsOfHours, &hours)) {
    return false;
  }
  int64_t below = 0;
  const std::string within_day = "00" + std::string(rest);
  std::string_view of_hour = within_day;
  if (!TakeTime(of_hour, &below) || __builtin_mul_overflow(hours, kMicrosOfHour, micros) ||
      __builtin_add_overflow(*micros, below, micros)) {
    return false;
  }
  text = rest.substr(rest.size() - of_hour.size());
  return true;
}

// "-" or "+" in front of a number.
int64_t TakeSign(std::string_view& text) {
  const bool negative = TakeChar(text, '-');
  if (!negative) {
    TakeChar(text, '+');
  }
  return negative ? -1 : 1;
}

std::string ClockText(int64_t micros) {
  const int64_t seconds = micros / kMicrosOfSecond;
  std::string text =
      fmt::format("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
  if (micros % kMicrosOfSecond != 0) {
    text += fmt::format(".{:06}", micros % kMicrosOfSecond);
    text.resize(text.find_last_not_of('0') + 1);
  }
  return text;
}

struct Moment {
  int64_t days = 0;    // since 2000-01-01
  int64_t micros = 0;  // of the day, less the zone
};

// "YYYY-MM-DD[ HH:MM:SS[.f][zone]][ BC]".
std::optional<Moment> ParseMoment(std::string_view text, bool time) {
  int64_t year = 0;
  int64_t month = 0;
  int64_t day = 0;
  if (!TakeNumber(text, 4, kMostDigitsOfYear, &year) || !TakeChar(text, '-') ||
      !TakeNumber(text, 2, 2, &month) || !TakeChar(text, '-') || !TakeNumber(text, 2, 2, &day)) {
    return std::nullopt;
  }
  Moment moment;
  int64_t zone = 0;
  if (time && (!TakeChar(text, ' ') || !TakeTime(text, &moment.micros) || !TakeZone(text, &zone))) {
    return std::nullopt;
  }
  moment.micros -= zone;
  if (text == " BC") {
    year = 1 - year;
  } else if (!text.empty()) {
    return std::nullopt;
  }
  const int64_t cycle = FloorDivide(year, kYearsOfCycle);
  const std::chrono::year_month_day date(
      std::chrono::year(static_cast<int>(year - cycle * kYearsOfCycle)),
      std::chrono::month(static_cast<unsigned>(month)),
      std::chrono::day(static_cast<unsigned>(day)));
  if (!date.ok()) {
    return std::nullopt;
  }
  moment.days = std::chrono::sys_days(date).time_since_epoch().count() + cycle * kDaysOfCycle -
                kDaysFrom1970To2000;
  return moment;
}

struct Date {
  std::string text;  // without the era
  bool before_christ = false;
};

Date DateOf(int64_t days) {
  const int64_t since_1970 = days + kDaysFrom1970To2000;
  const int64_t cycle = FloorDivide(since_1970, kDaysOfCycle);
  const std::chrono::year_month_day date(
      std::chrono::sys_days(std::chrono::days(since_1970 - cycle * kDaysOfCycle)));
  const int64_t year = static_cast<int>(date.year()) + cycle * kYearsOfCycle;
  return {fmt::format("{:04}-{:02}-{:02}", year > 0 ? year : 1 - year,
                      static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day())),
          year <= 0};
}

}  // namespace

std::optional<int32_t> ParsePostgresDate(std::string_view text) {
  if (text == "infinity" || text == "-infinity") {
    return text.front() == '-' ? INT32_MIN : INT32_MAX;
  }
  const std::optional<Moment> moment = ParseMoment(text, false);
  if (!moment.has_value() || moment->days < kFirstDate || moment->days > kLastDate) {
    return std::nullopt;
  }
  return static_cast<int32_t>(moment->days);
}

std::optional<int64_t> ParsePostgresTimestamp(std::string_view text) {
  if (text == "infinity" || text == "-infinity") {
    return text.front() == '-' ? INT64_MIN : INT64_MAX;
  }
  const std::optional<Moment> moment = ParseMoment(text, true);
  int64_t micros = 0;
  if (!moment.has_value() || __builtin_mul_overflow(moment->days, kMicrosOfDay, &micros) ||
      __builtin_add_overflow(micros, moment->micros, &micros) || micros < kFirstTimestamp ||
      micros > kLastTimestamp) {
    return std::nullopt;
  }
  return micros;
}

bool IsPostgresDate(int32_t days) {
  return days == INT32_MAX || days == INT32_MIN || (days >= kFirstDate && days <= kLastDate);
}

bool IsPostgresTimestamp(int64_t micros) {
  return micros == INT64_MAX || micros == INT64_MIN ||
         (micros >= kFirstTimestamp && micros <= kLastTimestamp);
}

std::string PostgresDateText(int32_t days) {
  if (days == INT32_MAX || days == INT32_MIN) {
    return days > 0 ? "infinity" : "-infinity";
  }
  const Date date = DateOf(days);
  return date.text + (date.before_christ ? " BC" : "");
}

std::string PostgresTimestampText(int64_t micros, bool zone) {
  if (micros == INT64_MAX || micros == INT64_MIN) {
    return micros > 0 ? "infinity" : "-infinity";
  }
  const int64_t days = FloorDivide(micros, kMicrosOfDay);
  const Date date = DateOf(days);
  const int64_t of_day = (micros % kMicrosOfDay + kMicrosOfDay) % kMicrosOfDay;
  const std::string text = date.text + " " + ClockText(of_day);
  return text + (zone ? "+00" : "") + (date.before_christ ? " BC" : "");
}

bool IsPostgresTime(const ClockTime& time) {
  constexpr int32_t kMostSecondsWest = 16 * 3600;
  return time.micros >= 0 && time.micros <= kMicrosOfDay && time.seconds_west > -kMostSecondsWest &&
         time.seconds_west < kMostSecondsWest;
}

std::optional<ClockTime> ParsePostgresTime(std::string_view text) {
  ClockTime time;
  int64_t zone = 0;
  if (!TakeTime(text, &time.micros) || !TakeZone(text, &zone) || !text.empty()) {
    return std::nullopt;
  }
  time.seconds_west = static_cast<int32_t>(-zone / kMicrosOfSecond);
  return IsPostgresTime(time) ? std::optional(time) : std::nullopt;
}

std::string PostgresTimeText(const ClockTime& time, bool zone) {
  const int32_t offset = std::abs(time.seconds_west);
  return ClockText(time.micros) +
         (zone ? fmt::format("{}{:02}:{:02}:{:02}", time.seconds_west > 0 ? '-' : '+',
                             offset / 3600, offset / 60 % 60, offset % 60)
               : "");
}

std::optional<Interval> ParsePostgresInterval(std::string_view text) {
  constexpr size_t kMostDigits = 10;
  Interval interval;
  bool any = false;
  while (!text.empty()) {
    any = true;
    const int64_t sign = TakeSign(text);
    if (int64_t micros = 0; TakeLongTime(text, &micros)) {
      interval.micros = sign * micros;
      break;  // the time is always last
    }
    int64_t number = 0;
    if (!TakeNumber(text, 1, kMostDigits, &number) || !TakeChar(text, ' ')) {
      return std::nullopt;
    }
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view unit = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const bool days = unit.starts_with("day");
    const int64_t factor = unit.starts_with("year") ? 12 : 1;
    int32_t* const part = days ? &interval.days : &interval.months;
    if ((!days && factor == 1 && !unit.starts_with("mon")) ||
        __builtin_add_overflow(*part, sign * number * factor, part)) {
      return std::nullopt;
    }
  }
  return any && text.empty() ? std::optional(interval) : std::nullopt;
}

std::string PostgresIntervalText(const Interval& interval) {
  // Each part with its sign: the SQL standard's style would apply the first sign to all.
  return fmt::format("{:+} mons {:+} days {}{}", interval.months, interval.days,
                     interval.micros < 0 ? '-' : '+', ClockText(std::abs(interval.micros)));
}

}  // namespace sluice::server::pgwire
