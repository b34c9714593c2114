#include "models/metrics/stability_index.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace sluice::models {
namespace {

TEST(StabilityIndex, IsTheSumOverTheBins) {
  EXPECT_DOUBLE_EQ(StabilityIndex({0.5, 0.5}, {30, 30}), 0);
  EXPECT_DOUBLE_EQ(StabilityIndex({0.5, 0.5}, {75, 25}),
                   0.25 * std::log(1.5) - 0.25 * std::log(0.5));
  EXPECT_DOUBLE_EQ(StabilityIndex({0.5, 0.5}, {100, 0}),
                   0.5 * std::log(2.0) - 0.495 * std::log(0.01));
  EXPECT_DOUBLE_EQ(StabilityIndex({0.5, 0.5}, {0, 0}), 0);
}

// Two samples of one population; the source's rule of thumb is 0.2.
TEST(StabilityIndex, NoiseIsThatOfChance) {
  constexpr size_t kBins = 10;
  constexpr int kRows = 300, kTries = 200;
  std::mt19937_64 random(1);
  std::uniform_int_distribution<size_t> bin(0, kBins - 1);
  double sum = 0;
  for (int i = 0; i < kTries; ++i) {
    std::vector<double> expected(kBins);
    std::vector<int64_t> counts(kBins);
    for (int row = 0; row < kRows; ++row) {
      expected[bin(random)] += 1.0 / kRows;
      ++counts[bin(random)];
    }
    sum += StabilityIndex(expected, counts);
  }
  const double noise = StabilityNoise(kBins, kRows, kRows);
  EXPECT_NEAR(sum / kTries, noise, 0.2 * noise);
}

}  // namespace
}  // namespace sluice::models
