#include "models/kernels/kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace sluice::models {
namespace {

std::vector<float> RandomFloats(size_t n, uint32_t seed, float scale = 1) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(-scale, scale);
  std::vector<float> values(n);
  for (float& value : values) {
    value = uniform(generator);
  }
  return values;
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

std::vector<const Kernels*> Sets() {
  const KernelSets supported = SupportedKernels();
  return {supported.begin(), supported.end()};
}

bool Fused(const Kernels& kernels) {
  return std::string(kernels.name) != "SSE2";
}

struct Shape {
  size_t m, n, k;
};
// Every remainder of rows and columns for every register block, and depths beyond the block's.
const Shape kShapes[] = {{1, 1, 1},     {1, 64, 256},  {5, 3, 7},    {6, 64, 70}, {13, 17, 33},
                         {256, 32, 64}, {70, 64, 256}, {7, 130, 40}, {24, 48, 5}, {11, 15, 1100},
                         {4, 16, 2050}, {12, 8, 3},    {3, 65, 2},   {2, 5, 0}};

class KernelsTest : public testing::TestWithParam<const Kernels*> {};

TEST_P(KernelsTest, ProductIsTheOneOfThreeLoops) {
  const Kernels& kernels = *GetParam();
  for (const Shape& shape : kShapes) {
    const auto [m, n, k] = shape;
    const std::vector<float> a = RandomFloats(m * k, 1);
    const std::vector<float> b = RandomFloats(k * n, 2);
    const std::vector<float> bias = RandomFloats(n, 3);
    const std::vector<float> start = RandomFloats(m * n, 4);
    std::vector<float> zero(m * n, 7), biased(m * n, 7), added = start;
    const GemmShape gemm = {m, n, k, k, 1, n, n};
    kernels.gemm(gemm, a.data(), b.data(), zero.data());
    kernels.gemm_bias(gemm, a.data(), b.data(), bias.data(), biased.data());
    kernels.gemm_add(gemm, a.data(), b.data(), added.data());
    for (size_t i = 0; i < m; ++i) {
      for (size_t j = 0; j < n; ++j) {
        double sum = 0;
        for (size_t x = 0; x < k; ++x) {
          sum += static_cast<double>(a[i * k + x]) * static_cast<double>(b[x * n + j]);
        }
        const size_t at = i * n + j;
        ASSERT_NEAR(zero[at], sum, 1e-4) << m << "x" << k << "x" << n << " at " << i << "," << j;
        ASSERT_NEAR(biased[at], sum + static_cast<double>(bias[j]), 1e-4);
        ASSERT_NEAR(added[at], sum + static_cast<double>(start[at]), 1e-4);
      }
    }
  }
}

TEST_P(KernelsTest, StridesReadATransposedMatrixAndLeaveTheRestOfTheRowAlone) {
  const Kernels& kernels = *GetParam();
  constexpr size_t kM = 19, kN = 21, kK = 9, kStride = 25;
  const std::vector<float> a = RandomFloats(kK * kM, 1);  // k x m, to be read as m x k
  const std::vector<float> b = RandomFloats(kK * kStride, 2);
  std::vector<float> c(kM * kStride, 5);
  kernels.gemm({kM, kN, kK, 1, kM, kStride, kStride}, a.data(), b.data(), c.data());
  for (size_t i = 0; i < kM; ++i) {
    for (size_t j = 0; j < kStride; ++j) {
      double sum = 0;
      for (size_t x = 0; x < kK; ++x) {
        sum += static_cast<double>(a[x * kM + i]) * static_cast<double>(b[x * kStride + j]);
      }
      ASSERT_NEAR(c[i * kStride + j], j < kN ? sum : 5.0, 1e-5);
    }
  }
}

TEST_P(KernelsTest, TransposeMovesEveryElement) {
  for (const Shape& shape : kShapes) {
    const std::vector<float> from = RandomFloats(shape.m * shape.n, 1);
    std::vector<float> to(shape.m * shape.n);
    GetParam()->transpose(shape.m, shape.n, from.data(), shape.n, to.data(), shape.m);
    for (size_t i = 0; i < shape.m; ++i) {
      for (size_t j = 0; j < shape.n; ++j) {
        ASSERT_EQ(to[j * shape.m + i], from[i * shape.n + j]);
      }
    }
  }
}

TEST_P(KernelsTest, SumsAndDots) {
  for (const size_t columns : {1u, 5u, 16u, 31u, 64u, 77u}) {
    constexpr size_t kRows = 37;
    const std::vector<float> values = RandomFloats(kRows * columns, 1);
    const std::vector<float> weights = RandomFloats(columns, 2);
    std::vector<float> sums(columns), dots(kRows);
    GetParam()->column_sums(kRows, columns, values.data(), columns, sums.data());
    GetParam()->row_dots(kRows, columns, values.data(), columns, weights.data(), 0.5f, dots.data());
    for (size_t j = 0; j < columns; ++j) {
      double sum = 0;
      for (size_t i = 0; i < kRows; ++i) {
        sum += static_cast<double>(values[i * columns + j]);
      }
      ASSERT_NEAR(sums[j], sum, 1e-5);
    }
    for (size_t i = 0; i < kRows; ++i) {
      double dot = 0.5;
      for (size_t j = 0; j < columns; ++j) {
        dot += static_cast<double>(values[i * columns + j]) * static_cast<double>(weights[j]);
      }
      ASSERT_NEAR(dots[i], dot, 1e-5);
    }
  }
}

TEST_P(KernelsTest, ExponentialIsExactToTwoUnits) {
  std::vector<float> x;
  for (float v = -86.9f; v < 86.9f; v += 0.0137f) {
    x.push_back(v);
  }
  std::vector<float> y = x;
  GetParam()->exp(y.data(), y.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const double exact = std::exp(static_cast<double>(x[i]));
    ASSERT_NEAR(static_cast<double>(y[i]) / exact, 1.0, 2.4e-7) << x[i];
  }
  std::vector<float> odd = {-1e30f, 1e30f, NAN, 0};
  GetParam()->exp(odd.data(), odd.size());
  EXPECT_LT(odd[0], 1e-37f);
  EXPECT_TRUE(std::isfinite(odd[1]));
  EXPECT_TRUE(std::isnan(odd[2])) << "a diverged network must not look healthy";
  EXPECT_EQ(odd[3], 1.0f);
}

TEST_P(KernelsTest, ActivationsAreTheTextbookFunctions) {
  const Kernels& kernels = *GetParam();
  const std::vector<float> x = RandomFloats(1003, 5, 12);
  auto run = [&](auto function) {
    std::vector<float> y = x;
    function(y.data());
    return y;
  };
  const size_t n = x.size();
  const auto relu = run([&](float* y) { kernels.relu(y, n); });
  const auto leaky = run([&](float* y) { kernels.leaky_relu(y, n); });
  const auto elu = run([&](float* y) { kernels.elu(y, n, 1, 1); });
  const auto tanh = run([&](float* y) { kernels.tanh(y, n); });
  const auto sigmoid = run([&](float* y) { kernels.sigmoid(y, n); });
  const auto gelu = run([&](float* y) { kernels.gelu(x.data(), y, n); });
  for (size_t i = 0; i < n; ++i) {
    const double v = static_cast<double>(x[i]);
    EXPECT_EQ(relu[i], std::max(0.0f, x[i]));
    EXPECT_NEAR(leaky[i], v > 0 ? v : 0.2 * v, 1e-6);
    EXPECT_NEAR(elu[i], v > 0 ? v : std::expm1(v), 3e-7);
    EXPECT_NEAR(tanh[i], std::tanh(v), 3e-7);
    EXPECT_NEAR(sigmoid[i], 1 / (1 + std::exp(-v)), 2e-7);
    EXPECT_NEAR(gelu[i], 0.5 * v * (1 + std::erf(v / std::sqrt(2.0))), 1e-3);
  }
  std::vector<float> nan = {NAN};
  kernels.relu(nan.data(), 1);
  EXPECT_TRUE(std::isnan(nan[0]));
}

TEST_P(KernelsTest, TanhKeepsSmallArguments) {
  std::vector<float> y = {1e-6f, -3e-4f, 0.01f, 0.3f};
  const std::vector<float> x = y;
  GetParam()->tanh(y.data(), y.size());
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(y[i]) / std::tanh(static_cast<double>(x[i])), 1, 3e-7);
  }
}

TEST_P(KernelsTest, LogisticLossAndProbability) {
  const std::vector<float> z = RandomFloats(515, 6, 30);
  std::vector<float> y(z.size()), loss(z.size()), p(z.size());
  for (size_t i = 0; i < y.size(); ++i) {
    y[i] = i % 3 == 0 ? 1.0f : 0.0f;
  }
  GetParam()->logistic(z.data(), y.data(), loss.data(), p.data(), z.size());
  for (size_t i = 0; i < z.size(); ++i) {
    const double v = static_cast<double>(z[i]);
    const double signed_v = y[i] > 0 ? -v : v;
    const double exact =
        signed_v > 0 ? signed_v + std::log1p(std::exp(-signed_v)) : std::log1p(std::exp(signed_v));
    EXPECT_NEAR(loss[i], exact, 3e-6) << v;
    EXPECT_NEAR(p[i], 1 / (1 + std::exp(-v)), 2e-7);
  }
}

TEST_P(KernelsTest, RowsAreGatheredAndScattered) {
  for (const size_t width : {1u, 3u, 4u, 8u, 16u, 64u, 70u}) {
    constexpr size_t kRows = 5;
    const std::vector<uint32_t> positions = {4, 0, 4, 2, 2, 2};
    const size_t rows_stride = width + 3;
    const std::vector<float> rows = RandomFloats(kRows * rows_stride, 1);
    const size_t stride = width + 2;
    std::vector<float> to(positions.size() * stride, 1), sums(kRows * rows_stride, 1);
    GetParam()->gather_rows(rows.data(), rows_stride, positions.data(), positions.size(), width,
                            to.data(), stride);
    for (size_t r = 0; r < positions.size(); ++r) {
      for (size_t d = 0; d < stride; ++d) {
        ASSERT_EQ(to[r * stride + d], d < width ? rows[positions[r] * rows_stride + d] : 1.0f);
      }
    }
    GetParam()->gather_add_rows(rows.data(), rows_stride, positions.data(), positions.size(), width,
                                to.data(), stride);
    EXPECT_EQ(to[0], 2 * rows[4 * rows_stride]);
    GetParam()->scatter_add_rows(to.data(), stride, positions.data(), positions.size(), width,
                                 sums.data(), rows_stride);
    EXPECT_NEAR(sums[2 * rows_stride], 1 + 6 * rows[2 * rows_stride], 1e-5);
    EXPECT_EQ(sums[1 * rows_stride], 1) << "a row that nobody named";
    EXPECT_EQ(sums[2 * rows_stride + width], 1) << "a column that is not of the row";
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, KernelsTest, testing::ValuesIn(Sets()), [](const auto& set) {
  std::string name = set.param->name;
  std::erase(name, '-');
  return name;
});

// A model must not depend on which machine of a cluster computed a step.
TEST(KernelSetsTest, FusedSetsGiveTheSameBits) {
  std::vector<const Kernels*> fused;
  for (const Kernels* set : SupportedKernels()) {
    if (Fused(*set)) {
      fused.push_back(set);
    }
  }
  if (fused.size() < 2) {
    GTEST_SKIP() << "this processor has one set with fused multiply-add";
  }
  const auto same = [&](const char* what, auto run) {
    EXPECT_TRUE(SameBits(run(*fused[0]), run(*fused[1]))) << what;
  };
  for (const Shape& shape : kShapes) {
    const size_t m = shape.m, n = shape.n, k = shape.k;
    const std::vector<float> a = RandomFloats(m * k, 1), b = RandomFloats(k * n, 2);
    same("gemm", [&](const Kernels& kernels) {
      std::vector<float> c(m * n);
      kernels.gemm({m, n, k, k, 1, n, n}, a.data(), b.data(), c.data());
      return c;
    });
    same("row_dots", [&](const Kernels& kernels) {
      std::vector<float> dots(m);
      kernels.row_dots(m, k, a.data(), k, a.data(), 1, dots.data());
      return dots;
    });
  }
  const std::vector<float> x = RandomFloats(1001, 3, 20);
  for (const auto function : {&Kernels::exp, &Kernels::tanh, &Kernels::sigmoid}) {
    same("function", [&](const Kernels& kernels) {
      std::vector<float> y = x;
      (kernels.*function)(y.data(), y.size());
      return y;
    });
  }
  same("gelu_gradient", [&](const Kernels& kernels) {
    std::vector<float> g(x.size(), 1);
    kernels.gelu_gradient(x.data(), g.data(), g.size());
    return g;
  });
  same("logistic", [&](const Kernels& kernels) {
    std::vector<float> y(x.size(), 1), loss(x.size()), p(x.size());
    kernels.logistic(x.data(), y.data(), loss.data(), p.data(), x.size());
    loss.insert(loss.end(), p.begin(), p.end());
    return loss;
  });
  same("adam", [&](const Kernels& kernels) {
    std::vector<float> values(x.size(), 1), slots(2 * x.size(), 0.5f);
    kernels.adam(values.data(), slots.data(), x.data(), x.size(),
                 {.1f, .9f, .1f, .99f, .01f, 1e-7f});
    return values;
  });
  same("ftrl", [&](const Kernels& kernels) {
    std::vector<float> values(x.size(), 1), slots(2 * x.size(), 0.5f);
    kernels.ftrl(values.data(), slots.data(), x.data(), x.size(), {20, .1f, .2f, .1f, 0, 1});
    return values;
  });
}

TEST(KernelSetsTest, TheActiveSetIsTheBestSupported) {
  EXPECT_EQ(&ActiveKernels(), SupportedKernels().sets[0]);
}

TEST(KernelSetsTest, InitialValuesAreTheSameBitsInEverySet) {
  const KernelSets supported = SupportedKernels();
  constexpr size_t kValues = kInitialBlocks * kInitialValues;
  for (uint64_t pair = 0; pair < 50'000; pair += kValues / 2) {
    uint64_t pairs[kInitialBlocks];
    for (size_t block = 0; block < kInitialBlocks; ++block) {
      pairs[block] = pair + 1'000'003 * block;  // anywhere
    }
    float expected[2 * kValues];
    supported.sets[0]->normals(17, pairs, 0.25F, expected);
    supported.sets[0]->uniforms(17, pairs, 0.25F, expected + kValues);
    for (const Kernels* set : supported) {
      float values[2 * kValues];
      set->normals(17, pairs, 0.25F, values);
      set->uniforms(17, pairs, 0.25F, values + kValues);
      ASSERT_EQ(std::memcmp(values, expected, sizeof(values)), 0) << set->name << " at " << pair;
    }
  }
}

}  // namespace
}  // namespace sluice::models
