#include "planner/odd_cells.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "models/features/cell_format.h"
#include "models/features/time_cell.h"

namespace sluice::planner {
namespace {

constexpr double kFewOdd = 0.05;
// "13a" beside numbers may be a name, and the numbers, too.
constexpr double kFewCodes = 0.005;
// A few words in many cells ('free' among prices) become a category beside the number.
constexpr double kManyOfFewWords = 0.3;
constexpr size_t kFewWords = 3;
constexpr size_t kMinDistinctBesideWords = 50;
// Fewer values are learnt as well as categories.
constexpr size_t kMinDistinct = 10;
constexpr double kMaxDistinctShare = 0.1;
constexpr double kFrequent = 0.01;
constexpr size_t kMinFrequent = 3;

bool IsPresent(const std::string& cell) {
  return !models::TrimBlanks(cell).empty() && !models::IsMissingWord(cell);
}

bool IsAsciiDigit(char c) {
  return c >= '0' && c <= '9';
}

// Digits and letters in one word: A12, 13a.
bool IsCode(std::string_view text) {
  text = models::TrimBlanks(text);
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  return std::all_of(text.begin(), text.end(),
                     [&](char c) { return IsAsciiDigit(c) || is_letter(c) || c == '-'; }) &&
         std::any_of(text.begin(), text.end(), IsAsciiDigit) &&
         std::any_of(text.begin(), text.end(), is_letter);
}

// What occurs most often; `of` says what of a cell is counted, "" if nothing.
template <typename Of>
std::string Commonest(const std::vector<std::string>& cells, Of of) {
  std::map<std::string, size_t> counts;
  for (const std::string& cell : cells) {
    std::string key = of(cell);
    if (!key.empty()) {
      ++counts[std::move(key)];
    }
  }
  const auto most =
      std::max_element(counts.begin(), counts.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == counts.end() ? "" : most->first;
}

std::string UnitOf(const std::string& cell) {
  const std::optional<models::UnitNumber> found = models::ParseUnitNumber(cell);
  return found ? found->unit : "";
}

// The kind of a list and, of numbers, how many it holds; "" if it is none.
std::string ListOf(const std::string& cell) {
  const models::CellFormat format = models::InferFormat(cell);
  switch (format.kind) {
    case models::CellKind::kCsv:
      return fmt::format("{} numbers", format.elements);
    case models::CellKind::kKeyValue:
      return "pairs";
    default:
      return "";
  }
}

// Of a sample's sample: whether it is worth looking at every cell.
bool MostFit(const std::vector<std::string>& cells, const Fits& fits) {
  constexpr size_t kLookedAt = 100;
  const size_t step = std::max<size_t>(1, cells.size() / kLookedAt);
  size_t present = 0, fitting = 0;
  for (size_t i = 0; i < cells.size(); i += step) {
    if (IsPresent(cells[i])) {
      ++present;
      fitting += fits(cells[i]) ? 1 : 0;
    }
  }
  return 2 * fitting >= present;
}

bool AreAccidents(const OddCells& odd, size_t distinct) {
  size_t cells = 0, codes = 0;
  for (const auto& [text, count] : odd.texts) {
    cells += count;
    codes += IsCode(text) ? count : 0;
  }
  const auto present = static_cast<double>(odd.present);
  if (distinct < kMinDistinct || static_cast<double>(codes) > kFewCodes * present) {
    return false;
  }
  const bool few_texts = odd.texts.size() <= kFewWords;
  const auto most_texts = kMaxDistinctShare * static_cast<double>(distinct);
  if (static_cast<double>(cells) <= kFewOdd * present) {
    return few_texts || static_cast<double>(odd.texts.size()) <= most_texts;
  }
  return few_texts && codes == 0 && distinct >= kMinDistinctBesideWords &&
         static_cast<double>(cells) <= kManyOfFewWords * present;
}

}  // namespace

std::vector<Fits> KindsOf(const std::vector<std::string>& cells) {
  using models::TimeFormat;
  std::vector<Fits> kinds;
  kinds.emplace_back([](const std::string& text) { return models::ParseNumber(text).has_value(); });
  for (const char group : {',', '.'}) {
    kinds.emplace_back([group](const std::string& text) {
      return models::ParseGroupedNumber(text, group, group == ',' ? '.' : ',').has_value();
    });
  }
  for (const TimeFormat format :
       {TimeFormat::kIso, TimeFormat::kYearFirst, TimeFormat::kMonth, TimeFormat::kMonthName,
        TimeFormat::kDayFirst, TimeFormat::kMonthFirst, TimeFormat::kClock}) {
    kinds.emplace_back(
        [format](const std::string& text) { return models::ParseTime(text, format).has_value(); });
  }
  for (std::string (*of)(const std::string&) : {UnitOf, ListOf}) {
    const std::string common = Commonest(cells, of);
    if (!common.empty()) {
      kinds.emplace_back([of, common](const std::string& text) { return of(text) == common; });
    }
  }
  return kinds;
}

std::optional<OddCells> FindOdd(const std::vector<std::string>& cells, const Fits& fits,
                                const std::vector<std::pair<std::string, double>>& common) {
  if (!MostFit(cells, fits)) {
    return std::nullopt;
  }
  OddCells odd;
  std::map<std::string, size_t> counts;
  std::set<std::string> distinct;
  for (const std::string& cell : cells) {
    if (!IsPresent(cell)) {
      continue;
    }
    ++odd.present;
    if (fits(cell)) {
      distinct.insert(cell);
    } else {
      ++counts[cell];
    }
  }
  odd.texts.assign(counts.begin(), counts.end());
  std::stable_sort(odd.texts.begin(), odd.texts.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  double missed = 0;  // by the sample, of what the other rows hold
  for (const auto& [text, share] : common) {
    missed += IsPresent(text) && counts.count(text) == 0 && !fits(text) ? share : 0;
  }
  return missed <= kFewOdd && AreAccidents(odd, distinct.size()) ? std::optional(std::move(odd))
                                                                 : std::nullopt;
}

std::vector<std::string> FrequentOnes(const OddCells& odd) {
  std::vector<std::string> frequent;
  for (const auto& [text, count] : odd.texts) {
    if (count >= kMinFrequent &&
        static_cast<double>(count) >= kFrequent * static_cast<double>(odd.present)) {
      frequent.push_back(text);
    }
  }
  return frequent;
}

std::string ShownOdd(const OddCells& odd) {
  constexpr size_t kShown = 3;
  std::string shown;
  size_t cells = 0;
  for (size_t i = 0; i < odd.texts.size(); ++i) {
    const auto& [text, count] = odd.texts[i];
    cells += count;
    if (i < kShown) {
      shown += (i == 0 ? "" : ", ") + models::QuotedCell(text);
    }
  }
  return fmt::format("{} ({} of {} looked at)", shown, cells, odd.present);
}

}  // namespace sluice::planner
