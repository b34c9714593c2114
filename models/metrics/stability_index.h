#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice::models {

// The population stability index of counts in bins against the shares that were expected in them:
// the sum of (p - q) * ln(p / q). 0: the same; above 0.2 the population is commonly taken to have
// shifted. Bins that are empty here count as half a row. Both vectors have the same size; the
// shares are positive. Source: N. Siddiqi, Credit Risk Scorecards, 2006.
double StabilityIndex(const std::vector<double>& expected, const std::vector<int64_t>& counts);

// Of two samples of one population the index is about this.
double StabilityNoise(std::size_t bins, int64_t rows, int64_t other_rows);

}  // namespace sluice::models
