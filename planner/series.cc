#include "planner/series.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <utility>

#include "base/letter_case.h"
#include "models/features/calendar_parts.h"
#include "planner/time_shape.h"

namespace sluice::planner {
namespace {

constexpr double kSeriesShare = 0.99;
constexpr size_t kMinSeriesRows = 50;
// Fewer times by the calendar alone are rather groups that the rows were sorted by.
constexpr size_t kMinCalendarTimes = 20;

// A table whose row numbers have more gaps was sampled: what is asked of it lies in between.
constexpr double kMostNumbersOfARow = 1.02;

// Coarsest first.
enum class Part { kYear, kMonth, kDayOfYear, kDay, kHour, kMinute, kSecond };
struct PartFacts {
  Part part;
  double min, max;
};

// What a column is called whose numbers are part of a time; by the last word of its name.
std::optional<PartFacts> PartOf(const std::string& name) {
  static const std::map<std::string, PartFacts, std::less<>> kParts = [] {
    std::map<std::string, PartFacts, std::less<>> parts;
    const auto add = [&parts](const PartFacts& facts, std::initializer_list<const char*> names) {
      for (const char* one : names) {
        parts.emplace(one, facts);
      }
    };
    add({Part::kYear, 0, 2100}, {"year", "yr", "jahr", "annee", "ano"});
    add({Part::kMonth, 1, 12}, {"month", "mnth", "mth", "monat", "mois", "mes"});
    add({Part::kDayOfYear, 1, 366}, {"dayofyear", "yday", "doy"});
    add({Part::kDay, 1, 31}, {"day", "dayofmonth", "mday", "tag", "jour", "dia"});
    add({Part::kHour, 0, 24}, {"hour", "hr", "hours", "stunde", "heure", "hora"});
    add({Part::kMinute, 0, 59}, {"minute", "minutes"});
    add({Part::kSecond, 0, 59}, {"second"});
    return parts;
  }();
  std::string lower = LowerAscii(name);
  for (const std::string_view several : {"day_of_month", "day_of_year"}) {
    if (lower.ends_with(several)) {
      std::erase(lower, '_');
    }
  }
  const size_t last = lower.find_last_of("_ -.");
  const auto found = kParts.find(last == std::string::npos ? lower : lower.substr(last + 1));
  return found == kParts.end() ? std::nullopt : std::optional(found->second);
}

// The sample's numbers of a column; empty: a cell is NULL.
std::vector<double> NumbersOf(size_t index, const catalog::SelectStatistics& statistics) {
  std::vector<double> numbers;
  for (const std::vector<Value>& row : statistics.sample) {
    const auto* number = std::get_if<int64_t>(&row[index]);
    if (number == nullptr) {
      return {};
    }
    numbers.push_back(static_cast<double>(*number));
  }
  return numbers;
}

bool AllDifferInOrder(const std::vector<double>& numbers) {
  return std::adjacent_find(numbers.begin(), numbers.end(), std::greater_equal<>()) ==
         numbers.end();
}

size_t Distinct(std::vector<double> sorted) {
  return static_cast<size_t>(std::unique(sorted.begin(), sorted.end()) - sorted.begin());
}

// The places in the calendar of the sample's rows.
std::vector<double> Places(const std::vector<std::vector<double>>& parts, size_t rows) {
  std::vector<double> places;
  std::vector<double> row(parts.size());
  for (size_t i = 0; i < rows; ++i) {
    std::transform(parts.begin(), parts.end(), row.begin(),
                   [i](const std::vector<double>& part) { return part[i]; });
    places.push_back(models::PlaceInCalendar(row));
  }
  return places;
}

// A column of whole numbers that grow from row to row.
std::optional<size_t> FindRowNumber(const Schema& schema, const std::vector<bool>& usable,
                                    const catalog::SelectStatistics& statistics) {
  for (size_t i = 0; i < schema.columns.size(); ++i) {
    if (usable[i] && schema.columns[i].type == DataType::kInt64 &&
        statistics.columns[i].distinct >= kSeriesShare * static_cast<double>(statistics.rows)) {
      const std::vector<double> numbers = NumbersOf(i, statistics);
      if (!numbers.empty() && AllDifferInOrder(numbers)) {
        return i;
      }
    }
  }
  return std::nullopt;
}

bool HasGaps(const catalog::ColumnStatistics& number, int64_t rows) {
  return number.has_range &&
         number.max - number.min + 1 > kMostNumbersOfARow * static_cast<double>(rows);
}

}  // namespace

bool IsSeries(size_t index, DataType type, models::TimeFormat format,
              const catalog::SelectStatistics& statistics) {
  const catalog::ColumnStatistics& own = statistics.columns[index];
  if (statistics.sample.size() < kMinSeriesRows || own.null_fraction > 0 ||
      own.distinct < kSeriesShare * static_cast<double>(statistics.rows)) {
    return false;
  }
  std::optional<int64_t> last;
  for (const std::vector<Value>& row : statistics.sample) {
    const std::optional<int64_t> time = TimeOf(row[index], type, format);
    if (!time || (last && *time <= *last)) {
      return false;
    }
    last = time;
  }
  return true;
}

Series FindCalendar(const Schema& schema, const std::vector<bool>& usable,
                    const catalog::SelectStatistics& statistics) {
  std::map<Part, std::pair<size_t, std::vector<double>>> found;
  if (statistics.sample.size() < kMinSeriesRows) {
    return {};
  }
  for (size_t i = 0; i < schema.columns.size(); ++i) {
    const std::optional<PartFacts> part = usable[i] && schema.columns[i].type == DataType::kInt64
                                              ? PartOf(schema.columns[i].name)
                                              : std::nullopt;
    if (!part || found.contains(part->part)) {
      continue;
    }
    std::vector<double> numbers = NumbersOf(i, statistics);
    if (!numbers.empty() && std::all_of(numbers.begin(), numbers.end(), [&part](double number) {
          return number >= part->min && number <= part->max;
        })) {
      found.emplace(part->part, std::pair(i, std::move(numbers)));
    }
  }
  // As many of them as the rows are ordered by. One alone may be any group.
  Series series;
  std::vector<std::vector<double>> parts;
  std::vector<double> places;
  for (auto& [part, column] : found) {
    parts.push_back(std::move(column.second));
    std::vector<double> finer = Places(parts, statistics.sample.size());
    if (!std::is_sorted(finer.begin(), finer.end())) {
      break;
    }
    series.columns.push_back(schema.columns[column.first].name);
    places = std::move(finer);
  }
  if (series.columns.size() < 2) {
    return {};
  }
  series.order = fmt::format("{}", fmt::join(series.columns, ", "));
  const std::optional<size_t> number = FindRowNumber(schema, usable, statistics);
  if (number.has_value() && HasGaps(statistics.columns[*number], statistics.rows)) {
    return {};
  }
  if (AllDifferInOrder(places)) {
    return series;
  }
  if (number.has_value()) {
    series.columns = {schema.columns[*number].name};
    series.order += " and " + series.columns.front();
    return series;
  }
  return Distinct(places) >= kMinCalendarTimes ? series : Series();
}

}  // namespace sluice::planner
