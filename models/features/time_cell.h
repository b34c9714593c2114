#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// Times in the formats that people and programs write, and the measures that models take of them.
// Pure.
namespace sluice::models {

enum class TimeFormat {
  kIso,         // 2020-12-31 [12:30[:45]] [zone]
  kYearFirst,   // 2020/12/31, 2020.12.31
  kMonthFirst,  // 12/31/2020, 12-31-20
  kDayFirst,    // 31/12/2020, 31.12.2020, 31-12-20
  kMonth,       // 2020-12, 2020/12: its first day
  kMonthName,   // 31-Dec-1995, 31 December 1995, Dec 31, 1995; a weekday before it
  kClock,       // 12:30, 9:05 PM: a time of day, as one of 1970-01-01
  kCompact,     // 20201231
  kSeconds,     // since 1970
  kMillis,      // since 1970
};
// By the spelling in InputColumn::time_format; "" is kIso.
std::optional<TimeFormat> FindTimeFormat(std::string_view name);
std::string_view TimeFormatName(TimeFormat format);
// An example of the format, for messages: "31/12/2020".
std::string_view TimeFormatExample(TimeFormat format);

// Microseconds since 1970-01-01 UTC. Days may have one digit and years two (1969 to 2068); a date
// may be followed by a time of day, with AM or PM and a zone.
std::optional<int64_t> ParseTime(std::string_view text, TimeFormat format);
// For a cell that is a number: kSeconds, kMillis, kCompact; nullopt for other formats.
std::optional<int64_t> TimeOfNumber(double number, TimeFormat format);

// The measure of a time that a NUMERIC feature uses.
enum class TimeMeasure {
  kMicros,     // since 1970
  kDays,       // since 1970, with a fraction
  kYear,       // 2020
  kDayOfYear,  // 1 to 366
  kYearSine,   // the time of year as a point on a circle
  kYearCosine,
  kDaySine,  // the time of day
  kDayCosine,
};
// By the spelling in Feature::time_part; "" is kMicros.
std::optional<TimeMeasure> FindTimeMeasure(std::string_view name);
double MeasureTime(int64_t micros, TimeMeasure measure);

}  // namespace sluice::models
