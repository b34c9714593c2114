#include "planner/leaks.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>

#include "models/features/cell_format.h"
#include "planner/made_label_internal.h"

namespace sluice::planner {
namespace {

// With fewer rows, or fewer per class, a good feature cannot be told from chance.
constexpr size_t kMinRows = 100;
constexpr size_t kMinOfClass = 10;
constexpr size_t kMinNumbers = 10;  // distinct labels of a regression
// A good feature of a real table alone reaches an AUC of up to 0.98 and a correlation of 0.97.
constexpr double kMinAuc = 0.995;
constexpr double kMinCorrelation = 0.995;
constexpr double kMinPurity = 0.97;  // of what the most frequent class leaves open
constexpr size_t kRowsPerValue = 5;
constexpr size_t kMaxColumns = 60;
constexpr size_t kMaxWarnings = 5;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

double CellNumber(const Value& cell) {
  if (const auto* flag = std::get_if<bool>(&cell)) {
    return *flag ? 1 : 0;
  }
  if (const auto* integer = std::get_if<int64_t>(&cell)) {
    return static_cast<double>(*integer);
  }
  if (const auto* number = std::get_if<double>(&cell)) {
    return std::isfinite(*number) ? *number : kNone;
  }
  if (const auto* text = std::get_if<std::string>(&cell)) {
    const auto number = models::ParseNumber(*text);
    return number && std::isfinite(*number) ? *number : kNone;
  }
  return kNone;
}

struct Numbers {
  std::vector<double> values;  // one per row; NaN: not a number
  bool known = false;          // nearly every cell is a number
};

std::vector<double> RanksOf(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (size_t i = 0; i < order.size();) {
    size_t end = i;
    while (end < order.size() && values[order[end]] == values[order[i]]) {
      ++end;
    }
    for (size_t j = i; j < end; ++j) {  // equal values share their mean rank
      ranks[order[j]] = static_cast<double>(i + end - 1) / 2;
    }
    i = end;
  }
  return ranks;
}

double Correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const auto count = static_cast<double>(a.size());
  const double mean_a = std::accumulate(a.begin(), a.end(), 0.0) / count;
  const double mean_b = std::accumulate(b.begin(), b.end(), 0.0) / count;
  double aa = 0, bb = 0, ab = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    aa += (a[i] - mean_a) * (a[i] - mean_a);
    bb += (b[i] - mean_b) * (b[i] - mean_b);
    ab += (a[i] - mean_a) * (b[i] - mean_b);
  }
  return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 0;
}

class LeakSearch {
 public:
  explicit LeakSearch(const LeakInput& input) : input_(input) {}

  std::vector<std::string> Run() {
    if (input_.statistics.sample.size() < kMinRows) {
      return {};
    }
    if (input_.classes) {
      ReadClasses();
    } else {
      label_ = Read(input_.label);
    }
    for (const size_t column : input_.features) {
      if (column == input_.label || warnings_.size() == kMaxWarnings) {
        continue;
      }
      const size_t before = warnings_.size();
      input_.classes ? CheckClasses(column) : CheckNumber(column);
      if (counts_.size() > 1 && warnings_.size() == before) {
        CheckNulls(column);
      }
    }
    if (!input_.classes && label_.known && warnings_.empty()) {
      CheckMade();
    }
    return std::move(warnings_);
  }

 private:
  const std::string& NameOf(size_t column) const { return input_.schema.columns[column].name; }

  Numbers Read(size_t column) const {
    Numbers numbers;
    size_t cells = 0;
    size_t known = 0;
    for (const std::vector<Value>& row : input_.statistics.sample) {
      numbers.values.push_back(CellNumber(row[column]));
      cells += IsNull(row[column]) ? 0 : 1;
      known += std::isnan(numbers.values.back()) ? 0 : 1;
    }
    numbers.known = known >= kMinRows && known == cells;
    return numbers;
  }

  void Warn(const std::string& what, const std::string& names) {
    warnings_.push_back(
        fmt::format("{}: is it known before {} is? features.exclude=[{}] leaves it "
                    "out",
                    what, NameOf(input_.label), names));
  }

  void CheckNumber(size_t column);
  void CheckClasses(size_t column);
  void CheckNulls(size_t column);
  void CheckMade();

  struct Purity {
    size_t right = 0;
    size_t values = 0;
  };
  void ReadClasses();
  template <typename Key>
  Purity PurityOf(const std::vector<std::pair<Key, int>>& sorted) const;
  bool WarnIfPure(const Purity& purity, const std::vector<size_t>& counts, const std::string& what,
                  const std::string& name);

  const LeakInput& input_;
  Numbers label_;             // of numbers
  std::vector<int> classes_;  // of classes: by row; -1: NULL
  std::vector<size_t> counts_;
  std::vector<std::string> warnings_;
};

void LeakSearch::CheckNumber(size_t column) {
  // Ranks require sorting each column; a monotonic relation is at least roughly linear.
  constexpr double kWorthRanking = 0.3;
  const Numbers feature = Read(column);
  if (!feature.known || !label_.known) {
    return;
  }
  std::vector<double> x, y;
  for (size_t i = 0; i < feature.values.size(); ++i) {
    if (!std::isnan(feature.values[i]) && !std::isnan(label_.values[i])) {
      x.push_back(feature.values[i]);
      y.push_back(label_.values[i]);
    }
  }
  if (x.size() < kMinRows || std::set<double>(y.begin(), y.end()).size() < kMinNumbers) {
    return;
  }
  const double line = std::abs(Correlation(x, y));
  const double order = line >= kWorthRanking ? std::abs(Correlation(RanksOf(x), RanksOf(y))) : 0;
  if (std::max(line, order) >= kMinCorrelation) {
    Warn(fmt::format("{} alone tells {} (correlation {:.3f}{})", NameOf(column),
                     NameOf(input_.label), std::max(line, order), order > line ? " of ranks" : ""),
         NameOf(column));
  }
}

// The classes of the label by row, -1: NULL.
void LeakSearch::ReadClasses() {
  std::map<std::string, int> ids;
  const DataType type = input_.schema.columns[input_.label].type;
  for (const std::vector<Value>& row : input_.statistics.sample) {
    const Value& cell = row[input_.label];
    int id = -1;
    if (!IsNull(cell)) {
      id = ids.try_emplace(FormatValue(cell, type), static_cast<int>(ids.size())).first->second;
      counts_.resize(ids.size());
      ++counts_[static_cast<size_t>(id)];
    }
    classes_.push_back(id);
  }
}

// Sorted (value, class) pairs: the number of rows that have their value's most frequent class, and
// the number of distinct values.
template <typename Key>
LeakSearch::Purity LeakSearch::PurityOf(const std::vector<std::pair<Key, int>>& sorted) const {
  Purity purity;
  std::vector<size_t> counts(counts_.size());
  for (size_t i = 0; i < sorted.size();) {
    std::fill(counts.begin(), counts.end(), 0);
    size_t end = i;
    for (; end < sorted.size() && sorted[end].first == sorted[i].first; ++end) {
      ++counts[static_cast<size_t>(sorted[end].second)];
    }
    purity.right += *std::max_element(counts.begin(), counts.end());
    ++purity.values;
    i = end;
  }
  return purity;
}

// Warns if `what` tells nearly all of what the most frequent class leaves open. `counts`: of the
// classes.
bool LeakSearch::WarnIfPure(const Purity& purity, const std::vector<size_t>& counts,
                            const std::string& what, const std::string& name) {
  const size_t rows = std::accumulate(counts.begin(), counts.end(), size_t{0});
  const size_t most = *std::max_element(counts.begin(), counts.end());
  if (purity.right <= most ||
      static_cast<double>(purity.right - most) < kMinPurity * static_cast<double>(rows - most)) {
    return false;
  }
  Warn(fmt::format("{} tells {} (in {:.1f} % of the rows)", what, NameOf(input_.label),
                   100.0 * static_cast<double>(purity.right) / static_cast<double>(rows)),
       name);
  return true;
}

void LeakSearch::CheckClasses(size_t column) {
  if (counts_.size() < 2) {
    return;
  }
  const Numbers feature = Read(column);
  std::vector<std::pair<double, int>> numbers;
  std::vector<std::pair<std::string_view, int>> texts;
  for (size_t i = 0; i < classes_.size(); ++i) {
    const Value& cell = input_.statistics.sample[i][column];
    if (classes_[i] < 0) {
      continue;
    }
    if (feature.known && !std::isnan(feature.values[i])) {
      numbers.emplace_back(feature.values[i], classes_[i]);
    } else if (!feature.known) {
      const auto* text = std::get_if<std::string>(&cell);
      texts.emplace_back(text == nullptr ? std::string_view() : std::string_view(*text),
                         classes_[i]);
    }
  }
  std::sort(numbers.begin(), numbers.end());
  std::sort(texts.begin(), texts.end());
  const size_t rows = numbers.size() + texts.size();
  std::vector<size_t> counts(counts_.size());
  for (const auto& [value, id] : numbers) {
    ++counts[static_cast<size_t>(id)];
  }
  for (const auto& [value, id] : texts) {
    ++counts[static_cast<size_t>(id)];
  }
  if (rows < kMinRows || rows - *std::max_element(counts.begin(), counts.end()) < kMinOfClass) {
    return;
  }
  const Purity purity = feature.known ? PurityOf(numbers) : PurityOf(texts);
  if (purity.values * kRowsPerValue <= rows &&
      WarnIfPure(purity, counts, NameOf(column) + " alone", NameOf(column))) {
    return;
  }
  if (counts.size() != 2 || !feature.known) {
    return;
  }
  std::vector<double> values;
  values.reserve(numbers.size());
  for (const auto& [value, id] : numbers) {
    values.push_back(value);
  }
  const std::vector<double> ranks = RanksOf(values);
  double sum = 0;
  for (size_t i = 0; i < numbers.size(); ++i) {
    sum += numbers[i].second == 1 ? ranks[i] : 0;
  }
  const auto n = static_cast<double>(counts[0]);
  const auto m = static_cast<double>(counts[1]);
  const double area = (sum - m * (m - 1) / 2) / (n * m);
  const double auc = std::max(area, 1 - area);
  if (auc >= kMinAuc) {
    Warn(fmt::format("{} alone tells {} (AUC {:.3f})", NameOf(column), NameOf(input_.label), auc),
         NameOf(column));
  }
}

// A column that is filled in only once the label is known, such as a date of closing.
void LeakSearch::CheckNulls(size_t column) {
  std::vector<std::pair<bool, int>> nulls;
  std::vector<size_t> counts(counts_.size());
  for (size_t i = 0; i < classes_.size(); ++i) {
    if (classes_[i] >= 0) {
      nulls.emplace_back(IsNull(input_.statistics.sample[i][column]), classes_[i]);
      ++counts[static_cast<size_t>(classes_[i])];
    }
  }
  if (nulls.size() < kMinRows ||
      nulls.size() - *std::max_element(counts.begin(), counts.end()) < kMinOfClass) {
    return;
  }
  std::sort(nulls.begin(), nulls.end());
  WarnIfPure(PurityOf(nulls), counts, fmt::format("whether {} is NULL", NameOf(column)),
             NameOf(column));
}

void LeakSearch::CheckMade() {
  std::vector<size_t> places;
  std::vector<std::vector<double>> columns;
  for (const size_t column : input_.features) {
    if (column != input_.label && columns.size() < kMaxColumns) {
      if (Numbers numbers = Read(column); numbers.known) {
        places.push_back(column);
        columns.push_back(std::move(numbers.values));
      }
    }
  }
  MadeLabel made = FindPair(label_.values, columns);
  const char* rounding = "";
  const char* all = "both";
  if (made.terms.empty()) {
    made = FindSum(label_.values, columns);
    rounding = ", up to rounding";
    all = "all";
  }
  if (made.terms.empty()) {
    return;
  }
  std::string text;
  std::vector<std::string> names;
  for (const MadeLabel::Term& term : made.terms) {
    names.push_back(NameOf(places[term.column]));
    const std::string first = term.sign == '-' ? "-" : "";
    text += (text.empty() ? first : fmt::format(" {} ", term.sign)) + names.back();
  }
  warnings_.push_back(
      fmt::format("{} is {} in {:.1f} % of the rows{}: are {} known before {} is? "
                  "features.exclude=[{}] leaves them out",
                  text, NameOf(input_.label), 100 * made.share, rounding, all, NameOf(input_.label),
                  fmt::join(names, ", ")));
}

}  // namespace

std::vector<std::string> FindLeaks(const LeakInput& input) {
  return LeakSearch(input).Run();
}

}  // namespace sluice::planner
