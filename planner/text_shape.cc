#include "planner/text_shape.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include "models/features/word_reader.h"

namespace sluice::planner {

std::vector<double> NumbersOfCell(const std::string& cell, const std::string& delimiter) {
  const std::string_view separator = delimiter.empty() ? std::string_view(" ") : delimiter;
  std::vector<double> numbers;
  std::string_view rest = models::WithoutBrackets(cell);
  while (!rest.empty()) {
    const size_t end = rest.find(separator);
    const std::optional<double> number = models::ParseNumber(rest.substr(0, end));
    if (number && std::isfinite(*number)) {
      numbers.push_back(*number);
    }
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + separator.size());
  }
  return numbers;
}

std::vector<NumberMoments> MomentsOfVectors(const std::vector<std::string>& cells,
                                            const models::ColumnFormat& format) {
  std::vector<NumberMoments> moments(static_cast<size_t>(format.width));
  double count = 0;
  for (const std::string& cell : cells) {
    const std::vector<double> numbers = NumbersOfCell(cell, format.delimiter);
    if (numbers.size() != moments.size()) {
      continue;
    }
    count += 1;
    for (size_t i = 0; i < numbers.size(); ++i) {  // Welford: `deviation` is the sum of squares
      const double distance = numbers[i] - moments[i].mean;
      moments[i].mean += distance / count;
      moments[i].deviation += distance * (numbers[i] - moments[i].mean);
    }
  }
  for (NumberMoments& one : moments) {
    one.deviation = count > 0 ? std::sqrt(one.deviation / count) : 0;
  }
  return moments;
}

std::set<std::string> UnitsOf(size_t column, const TextShape& shape,
                              const catalog::SelectStatistics& statistics, const Fits& fits) {
  constexpr size_t kMaxUnits = 10;  // more than this means names rather than units
  std::set<std::string> units;
  if (shape.format.kind != models::ColumnFormatKind::kText) {
    return units;
  }
  const auto add = [&](const std::string& text) {
    if (models::TrimBlanks(text).empty() || models::IsMissingWord(text) || (fits && !fits(text))) {
      return true;
    }
    const std::optional<models::UnitNumber> found = models::ParseUnitNumber(text);
    if (found) {
      units.insert(found->unit);
    }
    return found && units.size() <= kMaxUnits;
  };
  bool all = true;
  for (size_t i = 0; all && i < statistics.sample.size(); ++i) {
    const auto* text = std::get_if<std::string>(&statistics.sample[i][column]);
    all = text == nullptr || add(*text);
  }
  for (const auto& [value, fraction] : statistics.columns[column].common_values) {
    all = all && add(value);
  }
  return all ? units : std::set<std::string>();
}

void SetMoments(const std::vector<double>& numbers, TextShape* shape) {
  if (numbers.empty()) {
    return;
  }
  const auto count = static_cast<double>(numbers.size());
  double sum = 0;
  for (const double number : numbers) {
    sum += number;
  }
  shape->mean = sum / count;
  double squares = 0;
  for (const double number : numbers) {
    squares += (number - shape->mean) * (number - shape->mean);
  }
  shape->deviation = std::sqrt(squares / count);
  const auto [least, most] = std::minmax_element(numbers.begin(), numbers.end());
  shape->min = *least;
  shape->max = *most;
}

TextShape InspectText(const std::vector<std::string>& cells) {
  models::FormatVote vote;
  for (const std::string& cell : cells) {
    vote.Add(cell);
  }
  TextShape shape;
  shape.format = vote.Decide();
  if (shape.format.kind == models::ColumnFormatKind::kText && vote.cells() > 0) {
    constexpr size_t kMaxCounted = 100;  // per cell, against a few long ones
    size_t words = 0;
    for (const std::string& cell : cells) {
      words += models::CountWords(cell, kMaxCounted);
    }
    shape.words = static_cast<double>(words) / static_cast<double>(vote.cells());
  }
  const bool is_number = shape.format.kind == models::ColumnFormatKind::kNumber;
  if (!is_number && shape.format.kind != models::ColumnFormatKind::kDenseCsv) {
    return shape;
  }
  std::vector<double> numbers;
  for (const std::string& cell : cells) {
    if (!is_number) {
      const std::vector<double> own = NumbersOfCell(cell, shape.format.delimiter);
      numbers.insert(numbers.end(), own.begin(), own.end());
    } else if (const auto number = models::ParseNumber(cell); number && std::isfinite(*number)) {
      numbers.push_back(*number);
    }
  }
  SetMoments(numbers, &shape);
  return shape;
}

}  // namespace sluice::planner
