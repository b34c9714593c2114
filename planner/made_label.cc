#include <algorithm>
#include <cmath>
#include <numeric>

#include "planner/made_label_internal.h"

namespace sluice::planner {
namespace {

constexpr size_t kFewestTerms = 3;
constexpr size_t kFewestRows = 100;  // with which a pair is worth a second look
constexpr double kMinTermShare = 0.05;
constexpr double kMinEqual = 0.99;      // share of rows
constexpr double kMostRounding = 2e-3;  // of the label's standard deviation

double SumOfSquares(const std::vector<double>& numbers) {
  return std::inner_product(numbers.begin(), numbers.end(), numbers.begin(), 0.0);
}

double Deviation(const std::vector<double>& numbers) {
  const auto count = static_cast<double>(numbers.size());
  const double mean = std::accumulate(numbers.begin(), numbers.end(), 0.0) / count;
  return std::sqrt(std::max(0.0, SumOfSquares(numbers) / count - mean * mean));
}

// The sum of squares of rest + step * column.
double After(const std::vector<double>& rest, const std::vector<double>& column, int step) {
  double sum = 0;
  for (size_t i = 0; i < rest.size(); ++i) {
    const double left = rest[i] + step * column[i];
    sum += left * left;
  }
  return sum;
}

// The rows with a label.
std::vector<double> Labelled(const std::vector<double>& numbers, const std::vector<double>& label) {
  std::vector<double> kept;
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (!std::isnan(label[i])) {
      kept.push_back(std::isnan(numbers[i]) ? 0 : numbers[i]);
    }
  }
  return kept;
}

}  // namespace

MadeLabel FindPair(const std::vector<double>& label,
                   const std::vector<std::vector<double>>& columns) {
  struct Operation {
    char sign;
    double (*apply)(double, double);
    bool turned = false;
  };
  constexpr Operation kOperations[] = {{'+', [](double a, double b) { return a + b; }},
                                       {'-', [](double a, double b) { return a - b; }},
                                       {'-', [](double a, double b) { return b - a; }, true},
                                       {'*', [](double a, double b) { return a * b; }}};
  for (size_t i = 0; i < columns.size(); ++i) {
    for (size_t j = i + 1; j < columns.size(); ++j) {
      for (const Operation& operation : kOperations) {
        size_t rows = 0, equal = 0, telling = 0;
        for (size_t r = 0; r < label.size(); ++r) {
          const double a = columns[i][r];
          const double b = columns[j][r];
          const double y = label[r];
          if (std::isnan(a) || std::isnan(b) || std::isnan(y)) {
            continue;
          }
          ++rows;
          const double made = operation.apply(a, b);
          equal += std::abs(made - y) <= 1e-6 * std::max(1.0, std::abs(y)) ? 1 : 0;
          telling += y != a && y != b ? 1 : 0;  // but not one of the two alone
          if (rows == kFewestRows && equal < kFewestRows / 2) {
            break;
          }
        }
        const auto all = static_cast<double>(rows);
        if (rows >= kFewestRows && static_cast<double>(equal) >= kMinEqual * all &&
            static_cast<double>(telling) >= kMinTermShare * all) {
          const MadeLabel::Term first = {operation.turned ? j : i, '+'};
          return {{first, {operation.turned ? i : j, operation.sign}},
                  static_cast<double>(equal) / all};
        }
      }
    }
  }
  return {};
}

MadeLabel FindSum(const std::vector<double>& label,
                  const std::vector<std::vector<double>>& columns) {
  std::vector<double> rest = Labelled(label, label);
  std::vector<std::vector<double>> known;
  known.reserve(columns.size());
  for (const std::vector<double>& column : columns) {
    known.push_back(Labelled(column, label));
  }
  MadeLabel found;
  if (rest.empty()) {
    return found;
  }
  const double rounding = kMostRounding * Deviation(rest);
  std::vector<int> signs(columns.size(), 0);
  double left = SumOfSquares(rest);
  for (size_t turn = 0; turn < 2 * columns.size(); ++turn) {
    size_t best = 0;
    int step = 0;  // of the rest: the opposite of the sign
    double least = left;
    for (size_t c = 0; c < known.size(); ++c) {
      for (const int each : {-1, 1}) {
        const double after = std::abs(signs[c] - each) > 1 ? least : After(rest, known[c], each);
        if (after < least) {
          best = c;
          step = each;
          least = after;
        }
      }
    }
    if (step == 0) {
      break;
    }
    signs[best] -= step;
    left = least;
    std::transform(rest.begin(), rest.end(), known[best].begin(), rest.begin(),
                   [step](double a, double b) { return a + step * b; });
  }
  const auto equal = std::count_if(
      rest.begin(), rest.end(), [rounding](double number) { return std::abs(number) <= rounding; });
  found.share = static_cast<double>(equal) / static_cast<double>(rest.size());
  const auto terms = std::count_if(signs.begin(), signs.end(), [](int sign) { return sign != 0; });
  if (found.share < kMinEqual || static_cast<size_t>(terms) < kFewestTerms) {
    return found;
  }
  for (size_t c = 0; c < signs.size(); ++c) {
    if (signs[c] != 0) {
      found.terms.push_back({c, signs[c] < 0 ? '-' : '+'});
    }
  }
  return found;
}

}  // namespace sluice::planner
