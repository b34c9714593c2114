#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "planner/derive_internal.h"
#include "planner/free_text.h"

// The features of a column of times.
namespace sluice::planner {
namespace {

using models::Categorizer;
using models::Feature;

struct TimePart {
  const char* name;
  uint32_t values;
  int64_t micros;  // unit in which it changes
  int64_t cycle;   // number of units until it repeats
  int64_t seen;    // time that the rows must cover
};
constexpr int64_t kMicrosPerHour = 3'600'000'000;
constexpr int64_t kMicrosPerDay = 24 * kMicrosPerHour;
constexpr int64_t kMicrosPerYear = 365 * kMicrosPerDay;
constexpr TimePart kTimeParts[] = {{"hour", 24, kMicrosPerHour, 24, 0},
                                   {"weekday", 7, kMicrosPerDay, 7, 7 * kMicrosPerDay},
                                   {"month", 12, 28 * kMicrosPerDay, 0, kMicrosPerYear}};

int64_t FloorDivide(int64_t value, int64_t by) {
  return value / by - (value % by < 0 ? 1 : 0);
}

// A part that is constant in the sample (the hour of a date) is useless.
bool Varies(const std::vector<int64_t>& times, const TimePart& part) {
  const auto value = [&part](int64_t time) {
    const int64_t steps = FloorDivide(time, part.micros);
    return part.cycle > 0 ? steps - part.cycle * FloorDivide(steps, part.cycle) : steps;
  };
  return times.empty() || std::any_of(times.begin(), times.end(), [&](int64_t time) {
           return value(time) != value(times.front());
         });
}

// Whether the sample covers most of the part's cycle. What is learnt of less, such as of the months
// of one spring, is a matter of these dates, and wrong of later ones.
bool CoversCycle(const std::vector<int64_t>& times, int64_t micros) {
  constexpr double kMost = 0.85;  // six midnights are a week
  if (times.empty()) {
    return false;
  }
  const auto [first, last] = std::minmax_element(times.begin(), times.end());
  return static_cast<double>(*last) - static_cast<double>(*first) >=
         kMost * static_cast<double>(micros);
}

bool ManyYears(const std::vector<int64_t>& times) {
  const auto year = [](int64_t time) {
    return models::MeasureTime(time, models::TimeMeasure::kYear);
  };
  return std::any_of(times.begin(), times.end(),
                     [&](int64_t time) { return year(time) != year(times.front()); });
}

}  // namespace

std::vector<int64_t> FeatureMaker::SampleTimes(const ColumnFacts& column) const {
  // PostgreSQL's infinities, and times so close to them that their days would overflow.
  constexpr int64_t kLatest = std::numeric_limits<int64_t>::max() - 400 * kMicrosPerDay;
  std::vector<int64_t> times;
  for (const std::vector<Value>& row : input_.statistics.sample) {
    const auto time = TimeOf(row[column.index], column.info.type, column.time->format);
    if (time && std::abs(*time) < kLatest) {
      times.push_back(*time);
    }
  }
  return times;
}

// Adds a time as a number. `scaled`: by its mean and deviation.
void FeatureMaker::AddMeasure(const ColumnFacts& column, const std::vector<int64_t>& times,
                              const char* measure, const std::string& name, bool scaled,
                              const FeaturePart& part) {
  Feature* feature = Add(name, {column.index}, part);
  feature->set_kind(Feature::NUMERIC);
  feature->set_time_part(measure);
  feature->set_scale(1);
  const models::TimeMeasure taken = *models::FindTimeMeasure(measure);
  if (trees() && scaled) {
    std::vector<long double> measures;
    for (const int64_t time : times) {
      measures.push_back(static_cast<long double>(models::MeasureTime(time, taken)));
    }
    std::sort(measures.begin(), measures.end());
    CentreFeature(FindCentre(measures, false), feature);
  }
  if (trees() || !scaled) {
    return;
  }
  double sum = 0;
  for (const int64_t time : times) {
    sum += models::MeasureTime(time, taken);
  }
  const double mean = times.empty() ? 0 : sum / static_cast<double>(times.size());
  double squares = 0;
  for (const int64_t time : times) {
    const double distance = models::MeasureTime(time, taken) - mean;
    squares += distance * distance;
  }
  const double deviation =
      times.empty() ? 0 : std::sqrt(squares / static_cast<double>(times.size()));
  feature->set_offset(mean);
  feature->set_scale(deviation > 0 ? 1 / deviation : 1);
  if (deviation > 0) {
    const auto [first, last] = std::minmax_element(times.begin(), times.end());
    const double lowest = models::MeasureTime(*first, taken);
    const double highest = models::MeasureTime(*last, taken);
    feature->set_lowest(lowest - (highest - lowest));
    feature->set_highest(highest + (highest - lowest));
  }
}

// "06/17/45".
bool FeatureMaker::HasShortYears(const ColumnFacts& column) const {
  const models::TimeFormat format = column.time->format;
  if (!column.is_text() ||
      (format != models::TimeFormat::kDayFirst && format != models::TimeFormat::kMonthFirst)) {
    return false;
  }
  const std::vector<std::string> texts = TextsOf(input_.statistics.sample, column.index);
  return std::any_of(texts.begin(), texts.end(), [format](const std::string& text) {
    const size_t at = text.find_last_of("/.-", text.find_first_of(" T"));
    const std::string_view year =
        at == std::string::npos ? std::string_view() : std::string_view(text).substr(at + 1);
    const size_t digits = std::min(year.find_first_not_of("0123456789"), year.size());
    return digits == 2 && models::ParseTime(text, format).has_value();
  });
}

void FeatureMaker::AddTimestamp(const ColumnFacts& column, const FeaturePart& part) {
  const std::vector<int64_t> times = SampleTimes(column);
  const std::string& name = column.name();
  AddMeasure(column, times, "days", name, true, part);
  plan_.mutable_features(plan_.features_size() - 1)
      ->set_null_indicator(column.has_null() && !trees());
  plan_.mutable_inputs(static_cast<int>(*inputs_[column.index]))
      ->set_time_format(std::string(models::TimeFormatName(column.time->format)));
  AllowOddCells(column);
  AddFrequentOddCells(column, part);
  if (HasShortYears(column)) {
    Assume(
        fmt::format("{} has years of two digits: 69 to 99 are read as 1969 to 1999, the others "
                    "as 2000 to 2068",
                    name));
  }
  if (column.time->ambiguous) {
    Assume(
        fmt::format("the times of {} are read as {}, and fit the other order, too: write them as "
                    "2020-12-31 in the SELECT if that is wrong",
                    name, models::TimeFormatExample(column.time->format)));
  }
  if (ManyYears(times)) {
    AddMeasure(column, times, "year", name + "_year", true, part);
  }
  for (const TimePart& time_part : kTimeParts) {
    if (!Varies(times, time_part) || !CoversCycle(times, time_part.seen)) {
      continue;
    }
    Feature* feature = Add(fmt::format("{}_{}", name, time_part.name), {column.index}, part);
    Categorizer* categorizer = feature->mutable_categorizer();
    categorizer->set_kind(Categorizer::TIME_PART);
    categorizer->set_time_part(time_part.name);
    categorizer->set_oov_bucket(-1);
    categorizer->set_null_bucket(time_part.values);
    categorizer->set_buckets(time_part.values + 1);
    Represent(feature, "sum");
  }
  // Seasons and hours are cyclic, without a jump at midnight or at new year.
  const bool hours = Varies(times, kTimeParts[0]) && CoversCycle(times, kMicrosPerDay);
  const bool months = CoversCycle(times, kMicrosPerYear);
  if (trees()) {
    if (months) {
      AddMeasure(column, times, "day_of_year", name + "_day_of_year", false, part);
    }
    return;
  }
  for (const char* measure : {"year_sin", "year_cos", "day_sin", "day_cos"}) {
    if (measure[0] == 'y' ? months : hours) {
      AddMeasure(column, times, measure, fmt::format("{}_{}", name, measure), false, part);
    }
  }
}

}  // namespace sluice::planner
