#include "planner/time_shape.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <set>
#include <string>

#include "base/letter_case.h"
#include "models/features/cell_format.h"
#include "planner/derive.h"
#include "planner/free_text.h"

namespace sluice::planner {
namespace {

using models::ColumnFormatKind;
using models::TimeFormat;

// Seconds from 1990 to 2040: numbers in this range are times if their column is called so. Amounts
// and identifiers may be as large.
constexpr double kEarliestSeconds = 631'152'000;
constexpr double kLatestSeconds = 2'208'988'800;
constexpr double kMinTimes = 10;  // fewer values mean a code

// A text column's values that the statistics know.
std::vector<std::string> SeenTexts(size_t index, const catalog::SelectStatistics& statistics,
                                   const Fits& fits) {
  std::vector<std::string> texts = TextsOf(statistics.sample, index);
  for (const auto& [value, fraction] : statistics.columns[index].common_values) {
    texts.push_back(value);
  }
  std::erase_if(texts, [&fits](const std::string& text) {
    return models::TrimBlanks(text).empty() || models::IsMissingWord(text) || (fits && !fits(text));
  });
  return texts;
}

bool AllFit(const std::vector<std::string>& texts, TimeFormat format) {
  return !texts.empty() && std::all_of(texts.begin(), texts.end(), [format](const auto& text) {
    return models::ParseTime(text, format).has_value();
  });
}

// The numbers of distinct first fields and of distinct second ones.
size_t DistinctFields(const std::vector<std::string>& texts, size_t field) {
  std::set<std::string> values;
  for (const std::string& text : texts) {
    size_t begin = 0;
    for (size_t i = 0; i < field && begin != std::string::npos; ++i) {
      const size_t separator = text.find_first_of("/.-", begin);
      begin = separator == std::string::npos ? separator : separator + 1;
    }
    if (begin != std::string::npos) {
      values.insert(text.substr(begin, text.find_first_of("/.-", begin) - begin));
    }
  }
  return values.size();
}

// Both orders fit. A field that never changes is the day, of monthly times; otherwise points and
// dashes follow a day, and a slash follows a month.
TimeFormat LikelierOrder(const std::vector<std::string>& texts) {
  const bool first_fixed = DistinctFields(texts, 0) == 1;
  const bool second_fixed = DistinctFields(texts, 1) == 1;
  if (first_fixed != second_fixed) {
    return first_fixed ? TimeFormat::kDayFirst : TimeFormat::kMonthFirst;
  }
  return texts.front().find('/') != std::string::npos ? TimeFormat::kMonthFirst
                                                      : TimeFormat::kDayFirst;
}

// Whether a word of the name is one for times: "created_at", "eventTime", "ts".
bool NamesATime(std::string_view name) {
  // None that amounts are called by, too: bytes_sent, amount_due.
  static const std::set<std::string, std::less<>> kWords = {
      "t",        "ts",      "time",     "times",    "timestamp", "date",      "datetime", "dt",
      "day",      "epoch",   "unix",     "unixtime", "utc",       "seconds",   "secs",     "millis",
      "ms",       "msec",    "msecs",    "at",       "on",        "when",      "since",    "until",
      "created",  "updated", "modified", "changed",  "started",   "start",     "begin",    "began",
      "ended",    "end",     "expires",  "expiry",   "posted",    "published", "born",     "birth",
      "birthday", "dob",     "login",    "logged",   "seen",      "joined",    "deadline", "moment",
      "datum",    "zeit",    "fecha",    "hora",     "heure"};
  std::string word;
  for (size_t i = 0; i <= name.size(); ++i) {
    const char c = i < name.size() ? name[i] : '_';
    const bool letter = std::isalpha(static_cast<unsigned char>(c)) != 0;
    const bool begins = std::isupper(static_cast<unsigned char>(c)) != 0 && i > 0 &&
                        std::islower(static_cast<unsigned char>(name[i - 1])) != 0;
    if (!letter || begins) {
      if (kWords.find(word) != kWords.end()) {
        return true;
      }
      word.clear();
    }
    if (letter) {
      word += LowerAscii(c);
    }
  }
  return false;
}

std::optional<TimeShape> FindInTexts(const std::vector<std::string>& texts) {
  if (AllFit(texts, TimeFormat::kDayFirst) && AllFit(texts, TimeFormat::kMonthFirst)) {
    return TimeShape{LikelierOrder(texts), true};
  }
  for (const TimeFormat format :
       {TimeFormat::kYearFirst, TimeFormat::kMonth, TimeFormat::kMonthName, TimeFormat::kDayFirst,
        TimeFormat::kMonthFirst, TimeFormat::kClock}) {
    if (AllFit(texts, format)) {
      return TimeShape{format, false};
    }
  }
  return std::nullopt;
}

// Whether whole numbers are times: by their range and the column's name, and for days because all
// of them are valid days.
std::optional<TimeShape> FindInNumbers(const std::string& name, double min, double max,
                                       double distinct, const std::vector<double>& numbers) {
  if (distinct < kMinTimes || numbers.empty()) {
    return std::nullopt;
  }
  const bool named = NamesATime(name);
  if (named && min >= kEarliestSeconds && max <= kLatestSeconds) {
    return TimeShape{TimeFormat::kSeconds, false};
  }
  if (named && min >= 1000 * kEarliestSeconds && max <= 1000 * kLatestSeconds) {
    return TimeShape{TimeFormat::kMillis, false};
  }
  if (!named && NamesACategory(name)) {
    return std::nullopt;
  }
  constexpr double kFirstDay = 1900'01'01;
  constexpr double kLastDay = 2100'12'31;
  const bool days = min >= kFirstDay && max <= kLastDay &&
                    std::all_of(numbers.begin(), numbers.end(), [](double number) {
                      return models::TimeOfNumber(number, TimeFormat::kCompact).has_value();
                    });
  return days ? std::optional(TimeShape{TimeFormat::kCompact, false}) : std::nullopt;
}

}  // namespace

std::optional<TimeShape> FindTimes(const ColumnInfo& column, size_t index, const TextShape& shape,
                                   const catalog::SelectStatistics& statistics, const Fits& fits) {
  const catalog::ColumnStatistics& own = statistics.columns[index];
  if (column.type == DataType::kTimestamp ||
      (column.type == DataType::kText && shape.format.kind == ColumnFormatKind::kTimestamp)) {
    return TimeShape();
  }
  if (column.type == DataType::kText && shape.format.kind == ColumnFormatKind::kText) {
    return FindInTexts(SeenTexts(index, statistics, fits));
  }
  std::vector<double> numbers;
  if (column.type == DataType::kText && shape.format.kind == ColumnFormatKind::kNumber) {
    for (const std::string& text : SeenTexts(index, statistics, fits)) {
      numbers.push_back(models::ParseNumber(text).value_or(0));
    }
    const auto [min, max] = std::minmax_element(numbers.begin(), numbers.end());
    return numbers.empty() ? std::nullopt
                           : FindInNumbers(column.name, *min, *max, own.distinct, numbers);
  }
  if (column.type != DataType::kInt64 || !own.has_range) {
    return std::nullopt;
  }
  for (const std::vector<Value>& row : statistics.sample) {
    if (const auto* number = std::get_if<int64_t>(&row[index])) {
      numbers.push_back(static_cast<double>(*number));
    }
  }
  return FindInNumbers(column.name, own.min, own.max, own.distinct, numbers);
}

std::optional<int64_t> TimeOf(const Value& cell, DataType type, models::TimeFormat format) {
  if (const auto* text = std::get_if<std::string>(&cell)) {
    return models::ParseTime(*text, format);
  }
  if (const auto* number = std::get_if<int64_t>(&cell)) {
    return type == DataType::kTimestamp
               ? std::optional(*number)
               : models::TimeOfNumber(static_cast<double>(*number), format);
  }
  return std::nullopt;
}

}  // namespace sluice::planner
