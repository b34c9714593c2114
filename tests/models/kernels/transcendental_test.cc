#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "models/kernels/kernels.h"

namespace sluice::models {
namespace {

std::vector<const Kernels*> AllSets() {
  const KernelSets supported = SupportedKernels();
  return {supported.begin(), supported.end()};
}

class TranscendentalTest : public ::testing::TestWithParam<const Kernels*> {};

TEST_P(TranscendentalTest, LogarithmIsExactToTwoUnits) {
  std::vector<float> x;
  for (float v = 1e-44F; v < 3e38F; v *= 1.0173F) {
    x.push_back(v);
    v = std::nextafter(v, 1.0F);  // so that the smallest values grow, too
  }
  for (float v = 0.5F; v < 2.0F; v += 0.00137F) {
    x.push_back(v);
  }
  std::vector<float> y = x;
  GetParam()->log(y.data(), y.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const double exact = std::log(static_cast<double>(x[i]));
    ASSERT_NEAR(static_cast<double>(y[i]), exact, 2.4e-7 * std::fabs(exact) + 1e-12) << x[i];
  }
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> odd = {0, -0.0F, -1, NAN, kInfinity, 1};
  GetParam()->log(odd.data(), odd.size());
  EXPECT_EQ(odd[0], -kInfinity);
  EXPECT_EQ(odd[1], -kInfinity);
  EXPECT_TRUE(std::isnan(odd[2]));
  EXPECT_TRUE(std::isnan(odd[3]));
  EXPECT_EQ(odd[4], kInfinity);
  EXPECT_EQ(odd[5], 0);
}

TEST_P(TranscendentalTest, ErrorFunction) {
  std::vector<float> x;
  for (float v = -6; v < 6; v += 0.00317F) {
    x.push_back(v);
  }
  std::vector<float> y = x;
  GetParam()->erf(y.data(), y.size());
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_NEAR(static_cast<double>(y[i]), std::erf(static_cast<double>(x[i])), 2e-7) << x[i];
  }
  std::vector<float> odd = {0, 1e30F, -INFINITY, NAN, 1e-20F};
  GetParam()->erf(odd.data(), odd.size());
  EXPECT_EQ(odd[0], 0);
  EXPECT_EQ(odd[1], 1);
  EXPECT_EQ(odd[2], -1);
  EXPECT_TRUE(std::isnan(odd[3]));
  EXPECT_NEAR(odd[4] / 1e-20F, 1.1283792F, 1e-6F);
}

TEST_P(TranscendentalTest, Powers) {
  const std::vector<float> bases = {2, 0.3F, 7, -2, -2, -2, 0, 0, 0, NAN, 1.5F, -3, 10, 1e-3F};
  const std::vector<float> exponents = {0.5F, 1.7F, -2.3F, 3,   4,  0.5F, 2,
                                        -1,   0,    2,     NAN, -1, 30,   11};
  std::vector<float> powers(bases.size());
  GetParam()->pow(bases.data(), exponents.data(), powers.data(), powers.size());
  for (size_t i = 0; i < powers.size(); ++i) {
    const double exact = std::pow(static_cast<double>(bases[i]), static_cast<double>(exponents[i]));
    if (std::isnan(exact)) {
      EXPECT_TRUE(std::isnan(powers[i])) << i;
    } else if (std::isinf(exact) || exact == 0) {
      EXPECT_EQ(static_cast<double>(powers[i]), exact) << i;
    } else {
      const double share = 2.4e-7 * (2 + std::fabs(std::log(std::fabs(exact))));
      EXPECT_NEAR(static_cast<double>(powers[i]) / exact, 1, share) << i;
    }
  }
}

TEST(TranscendentalSetsTest, FusedSetsGiveTheSameBits) {
  std::vector<float> x;
  for (float v = -30; v < 30; v += 0.0137F) {
    x.push_back(v);
  }
  std::vector<std::vector<float>> outcomes;
  for (const Kernels* kernels : AllSets()) {
    if (std::string(kernels->name) == "SSE2") {
      continue;
    }
    std::vector<float> all;
    for (const auto function : {kernels->log, kernels->erf}) {
      std::vector<float> y(x.size());
      for (size_t i = 0; i < x.size(); ++i) {
        y[i] = std::fabs(x[i]);
      }
      function(y.data(), y.size());
      all.insert(all.end(), y.begin(), y.end());
    }
    std::vector<float> powers(x.size());
    const std::vector<float> bases(x.size(), 1.7F);
    kernels->pow(bases.data(), x.data(), powers.data(), powers.size());
    all.insert(all.end(), powers.begin(), powers.end());
    outcomes.push_back(std::move(all));
  }
  for (const std::vector<float>& outcome : outcomes) {
    EXPECT_EQ(outcome, outcomes.front());
  }
}

INSTANTIATE_TEST_SUITE_P(All, TranscendentalTest, ::testing::ValuesIn(AllSets()),
                         [](const auto& test) {
                           std::string name = test.param->name;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace sluice::models
