#include "planner/number_centre.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace sluice::planner {
namespace {

// A smaller share of numbers that look like their neighbours makes no difference to a model, and
// the others keep their bits.
constexpr double kFewMerged = 0.01;

float ToFloat(long double number) {
  constexpr long double kLargest = std::numeric_limits<float>::max();
  return static_cast<float>(std::clamp(number, -kLargest, kLargest));
}

std::vector<long double> Distinct(const std::vector<long double>& numbers, bool whole) {
  constexpr long double kRounding = 8 * std::numeric_limits<double>::epsilon();
  std::vector<long double> distinct;
  for (const long double number : numbers) {
    const long double close = whole ? 0 : kRounding * std::fabs(number);
    if (distinct.empty() || number - distinct.back() > close) {
      distinct.push_back(number);
    }
  }
  return distinct;
}

// How many of the ascending numbers are, on their scale, the same float as the one before.
size_t CountMerged(const std::vector<long double>& distinct, const NumberCentre& centre) {
  size_t merged = 0;
  float last = 0;
  for (size_t i = 0; i < distinct.size(); ++i) {
    const float own = ToFloat((distinct[i] - centre.offset) * centre.scale);
    merged += i > 0 && own == last ? 1 : 0;
    last = own;
  }
  return merged;
}

// Brings the farthest number near 1 if it would be far from what floats can hold.
double ScaleFor(long double farthest) {
  constexpr int kMostExponent = 100;
  constexpr int kLeastExponent = -1000;  // so that the scale is finite
  if (!(farthest > 0)) {
    return 1;
  }
  const int exponent = std::ilogb(farthest);
  return std::abs(exponent) <= kMostExponent ? 1
                                             : std::ldexp(1.0, -std::max(exponent, kLeastExponent));
}

}  // namespace

std::optional<NumberCentre> FindCentre(const std::vector<long double>& numbers, bool whole) {
  const std::vector<long double> distinct = Distinct(numbers, whole);
  const size_t merged = CountMerged(distinct, {});
  if (merged == 0 ||
      static_cast<double>(merged) < kFewMerged * static_cast<double>(distinct.size())) {
    return std::nullopt;
  }
  NumberCentre centre;
  centre.offset = static_cast<double>(numbers[numbers.size() / 2]);
  centre.scale = ScaleFor(std::max(std::fabs(numbers.front() - centre.offset),
                                   std::fabs(numbers.back() - centre.offset)));
  return 2 * CountMerged(distinct, centre) <= merged ? std::optional(centre) : std::nullopt;
}

}  // namespace sluice::planner
