#include "models/features/time_cell.h"

#include <array>
#include <chrono>
#include <cmath>
#include <numbers>
#include <utility>

#include "models/features/cell_format.h"
#include "models/features/time_text_internal.h"

namespace sluice::models {
namespace {

constexpr int64_t kSecond = 1'000'000;
constexpr int64_t kDay = 86'400 * kSecond;
// 9999-12-31: later values are not times.
constexpr double kLatestSeconds = 253'402'300'799.0;

constexpr std::pair<TimeFormat, std::string_view> kFormats[] = {{TimeFormat::kIso, ""},
                                                                {TimeFormat::kYearFirst, "ymd"},
                                                                {TimeFormat::kMonthFirst, "mdy"},
                                                                {TimeFormat::kDayFirst, "dmy"},
                                                                {TimeFormat::kMonth, "month"},
                                                                {TimeFormat::kMonthName, "name"},
                                                                {TimeFormat::kClock, "clock"},
                                                                {TimeFormat::kCompact, "compact"},
                                                                {TimeFormat::kSeconds, "seconds"},
                                                                {TimeFormat::kMillis, "millis"}};

constexpr std::pair<TimeMeasure, std::string_view> kMeasures[] = {
    {TimeMeasure::kMicros, ""},           {TimeMeasure::kDays, "days"},
    {TimeMeasure::kYear, "year"},         {TimeMeasure::kDayOfYear, "day_of_year"},
    {TimeMeasure::kYearSine, "year_sin"}, {TimeMeasure::kYearCosine, "year_cos"},
    {TimeMeasure::kDaySine, "day_sin"},   {TimeMeasure::kDayCosine, "day_cos"}};

constexpr std::string_view kMonths[] = {"january",   "february", "march",    "april",
                                        "may",       "june",     "july",     "august",
                                        "september", "october",  "november", "december"};
constexpr std::string_view kWeekdays[] = {"monday", "tuesday",  "wednesday", "thursday",
                                          "friday", "saturday", "sunday"};

std::optional<int64_t> Midnight(std::optional<int> year, std::optional<int> month,
                                std::optional<int> day) {
  if (!year || !month || !day || *month < 1 || *day < 1) {
    return std::nullopt;
  }
  const std::chrono::year_month_day date(std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day)));
  if (!date.ok()) {
    return std::nullopt;
  }
  const std::chrono::sys_time<std::chrono::microseconds> midnight = std::chrono::sys_days(date);
  return midnight.time_since_epoch().count();
}

// "dec", "december" -> 12.
std::optional<int> MonthOf(std::string_view word) {
  constexpr size_t kShortest = 3;
  for (size_t i = 0; i < std::size(kMonths); ++i) {
    if (word.size() >= kShortest && (kMonths[i].starts_with(word) || word == "sept") &&
        (word != "sept" || i == 8)) {
      return static_cast<int>(i) + 1;
    }
  }
  return std::nullopt;
}

bool IsWeekday(std::string_view word) {
  for (const std::string_view weekday : kWeekdays) {
    if (word.size() >= 2 && weekday.starts_with(word)) {
      return true;
    }
  }
  return false;
}

std::optional<int64_t> NumericDate(TimeFormat format, TimeText* text) {
  std::array<std::optional<int>, 3> fields;
  char separator = 0;
  for (size_t i = 0; i < fields.size(); ++i) {
    const bool year = i == (format == TimeFormat::kYearFirst ? 0 : 2);
    fields[i] = !year                              ? text->Number(1, 2)
                : format == TimeFormat::kYearFirst ? text->Number(4, 4)
                                                   : text->Year();
    if (!fields[i]) {
      return std::nullopt;
    }
    for (const char c : {'/', '.', '-'}) {
      if (i < 2 && (separator == 0 || separator == c) && text->Take(c)) {
        separator = c;
        break;
      }
    }
    if (separator == 0) {
      return std::nullopt;
    }
  }
  switch (format) {
    case TimeFormat::kYearFirst:
      return Midnight(fields[0], fields[1], fields[2]);
    case TimeFormat::kMonthFirst:
      return Midnight(fields[2], fields[0], fields[1]);
    default:
      return Midnight(fields[2], fields[1], fields[0]);
  }
}

// "2020-12", "2020/12".
std::optional<int64_t> Month(TimeText* text) {
  const std::optional<int> year = text->Digits(4);
  if (!year || (!text->Take('-') && !text->Take('/'))) {
    return std::nullopt;
  }
  const std::optional<int> month = text->Number(1, 2);
  return text->AtEnd() ? Midnight(year, month, 1) : std::nullopt;
}

// "31-Dec-1995", "Thu, 31 December 1995", "Dec 31, 1995".
std::optional<int64_t> NamedDate(TimeText* text) {
  const auto skip = [text] {
    while (text->Take('-') || text->Take('/') || text->Take(',') || text->Take('.')) {
    }
    text->SkipBlanks();
  };
  std::string word = text->Word();
  if (!word.empty() && !MonthOf(word) && IsWeekday(word)) {
    skip();
    word = text->Word();
  }
  std::optional<int> month;
  if (!word.empty() && !(month = MonthOf(word))) {
    return std::nullopt;
  }
  skip();
  const std::optional<int> day = text->Number(1, 2);
  skip();
  if (!month) {
    month = MonthOf(text->Word());
    skip();
  }
  return Midnight(text->Year(), month, day);
}

// Adds what follows the date: nothing, or a time of day.
std::optional<int64_t> AddClock(int64_t midnight, TimeText* text) {
  if (text->AtEnd()) {
    return midnight;
  }
  text->Take(',');
  if (!text->Take('T')) {
    text->SkipBlanks();
  }
  const std::optional<int64_t> clock = text->Clock(1);
  if (!clock) {
    return std::nullopt;
  }
  text->SkipBlanks();
  int64_t shift = 0;
  constexpr int64_t kHalfDay = kDay / 2;
  TimeText behind = *text;
  const std::string half = behind.Word();
  if (half == "am" || half == "pm") {
    if (*clock >= kHalfDay + kDay / 24) {
      return std::nullopt;
    }
    const bool twelve = *clock >= kHalfDay;
    shift = half == "am" ? (twelve ? -kHalfDay : 0) : (twelve ? 0 : kHalfDay);
    *text = behind;
    text->SkipBlanks();
  }
  const std::optional<int64_t> zone = text->Zone();
  return zone && text->AtEnd() ? std::optional(midnight + *clock + shift - *zone) : std::nullopt;
}

template <typename Value, size_t kCount>
std::optional<Value> FindByName(const std::pair<Value, std::string_view> (&pairs)[kCount],
                                std::string_view name) {
  for (const auto& [value, own] : pairs) {
    if (own == name) {
      return value;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<TimeFormat> FindTimeFormat(std::string_view name) {
  return FindByName(kFormats, name);
}

std::string_view TimeFormatName(TimeFormat format) {
  for (const auto& [value, name] : kFormats) {
    if (value == format) {
      return name;
    }
  }
  return "";
}

std::string_view TimeFormatExample(TimeFormat format) {
  switch (format) {
    case TimeFormat::kIso:
      return "2014-04-01 12:30:00";
    case TimeFormat::kYearFirst:
      return "2020/12/31";
    case TimeFormat::kMonthFirst:
      return "12/31/2020";
    case TimeFormat::kDayFirst:
      return "31/12/2020";
    case TimeFormat::kMonth:
      return "2020-12";
    case TimeFormat::kMonthName:
      return "31-Dec-2020";
    case TimeFormat::kClock:
      return "12:30";
    case TimeFormat::kCompact:
      return "20201231";
    case TimeFormat::kSeconds:
      return "1609372800 (seconds since 1970)";
    case TimeFormat::kMillis:
      return "1609372800000 (milliseconds since 1970)";
  }
  return "";
}

std::optional<int64_t> ParseTimestamp(std::string_view text) {
  TimeText rest(text);
  const std::optional<int> year = rest.Digits(4);
  std::optional<int> month, day;
  if (!year || !rest.Take('-') || !(month = rest.Digits(2)) || !rest.Take('-') ||
      !(day = rest.Digits(2))) {
    return std::nullopt;
  }
  const std::optional<int64_t> midnight = Midnight(year, month, day);
  if (!midnight || rest.AtEnd()) {
    return midnight;
  }
  if (!rest.Take(' ') && !rest.Take('T')) {
    return std::nullopt;
  }
  const std::optional<int64_t> clock = rest.Clock(2);
  const std::optional<int64_t> zone = clock ? rest.Zone() : std::nullopt;
  return zone && rest.AtEnd() ? std::optional(*midnight + *clock - *zone) : std::nullopt;
}

std::optional<int64_t> ParseTime(std::string_view text, TimeFormat format) {
  if (format == TimeFormat::kIso) {
    return ParseTimestamp(text);
  }
  if (format == TimeFormat::kSeconds || format == TimeFormat::kMillis ||
      format == TimeFormat::kCompact) {
    const std::optional<double> number = ParseNumber(text);
    return number ? TimeOfNumber(*number, format) : std::nullopt;
  }
  TimeText rest(text);
  if (format == TimeFormat::kMonth) {
    return Month(&rest);
  }
  if (format == TimeFormat::kClock) {
    return rest.AtEnd() ? std::nullopt : AddClock(0, &rest);
  }
  const std::optional<int64_t> midnight =
      format == TimeFormat::kMonthName ? NamedDate(&rest) : NumericDate(format, &rest);
  return midnight ? AddClock(*midnight, &rest) : std::nullopt;
}

std::optional<int64_t> TimeOfNumber(double number, TimeFormat format) {
  switch (format) {
    case TimeFormat::kSeconds:
    case TimeFormat::kMillis: {
      const double seconds = format == TimeFormat::kMillis ? number / 1000 : number;
      if (!(std::abs(seconds) <= kLatestSeconds)) {
        return std::nullopt;
      }
      return static_cast<int64_t>(std::llround(seconds * static_cast<double>(kSecond)));
    }
    case TimeFormat::kCompact: {
      if (!(number >= 1000'01'01 && number <= 9999'12'31) || number != std::floor(number)) {
        return std::nullopt;
      }
      const int whole = static_cast<int>(number);
      return Midnight(whole / 10000, whole / 100 % 100, whole % 100);
    }
    default:
      return std::nullopt;
  }
}

std::optional<TimeMeasure> FindTimeMeasure(std::string_view name) {
  return FindByName(kMeasures, name);
}

double MeasureTime(int64_t micros, TimeMeasure measure) {
  using std::chrono::floor;
  constexpr double kCircle = 2 * std::numbers::pi;
  const std::chrono::sys_time<std::chrono::microseconds> time{std::chrono::microseconds(micros)};
  const auto day = floor<std::chrono::days>(time);
  const double of_day = static_cast<double>(std::chrono::microseconds(time - day).count()) /
                        static_cast<double>(kDay);
  const std::chrono::year_month_day date(day);
  const double day_of_year = static_cast<double>(
      (day - std::chrono::sys_days(date.year() / std::chrono::January / 1)).count());
  switch (measure) {
    case TimeMeasure::kMicros:
      return static_cast<double>(micros);
    case TimeMeasure::kDays:
      return static_cast<double>(micros) / static_cast<double>(kDay);
    case TimeMeasure::kYear:
      return static_cast<int>(date.year());
    case TimeMeasure::kDayOfYear:
      return day_of_year + 1;
    case TimeMeasure::kYearSine:
      return std::sin(kCircle * (day_of_year + of_day) / 365.25);
    case TimeMeasure::kYearCosine:
      return std::cos(kCircle * (day_of_year + of_day) / 365.25);
    case TimeMeasure::kDaySine:
      return std::sin(kCircle * of_day);
    case TimeMeasure::kDayCosine:
      return std::cos(kCircle * of_day);
  }
  return 0;
}

}  // namespace sluice::models
