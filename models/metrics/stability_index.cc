#include "models/metrics/stability_index.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace sluice::models {

double StabilityIndex(const std::vector<double>& expected, const std::vector<int64_t>& counts) {
  constexpr double kHalfRow = 0.5;
  const auto rows = static_cast<double>(std::accumulate(counts.begin(), counts.end(), int64_t{0}));
  double index = 0;
  for (size_t i = 0; rows > 0 && i < counts.size(); ++i) {
    const double share = std::max(static_cast<double>(counts[i]), kHalfRow) / rows;
    index += (share - expected[i]) * std::log(share / expected[i]);
  }
  return index;
}

double StabilityNoise(std::size_t bins, int64_t rows, int64_t other_rows) {
  const auto part = [](int64_t of) { return of > 0 ? 1.0 / static_cast<double>(of) : 1.0; };
  return static_cast<double>(bins - 1) * (part(rows) + part(other_rows));
}

}  // namespace sluice::models
