#include "models/trees/histogram/exact_math.h"

#include <gtest/gtest.h>

#include <cmath>

#include "models/trees/histogram/gradient_sums.h"

namespace sluice::models::histogram {
namespace {

TEST(ExactMathTest, IsCloseToTheLibrarys) {
  constexpr double kUnits = 4e-16;
  for (double x = -690; x < 690; x += 0.37) {
    EXPECT_NEAR(Exp(x) / std::exp(x), 1, kUnits) << x;
  }
  for (double x = 1e-300; x < 1e300; x *= 3.3) {
    EXPECT_NEAR(Log(x), std::log(x), kUnits * std::max(1.0, std::fabs(std::log(x)))) << x;
  }
  for (double x = 1e-20; x < 1e10; x *= 1.7) {
    EXPECT_NEAR(Log1p(x) / std::log1p(x), 1, 2 * kUnits) << x;
  }
  EXPECT_NEAR(Log1p(-0.9), std::log1p(-0.9), 1e-15);
  EXPECT_EQ(Exp(0), 1);
  EXPECT_EQ(Log(1), 0);
  EXPECT_EQ(Sigmoid(0), 0.5);
  EXPECT_EQ(Sigmoid(-1e9), Sigmoid(-700)) << "clamped";
  EXPECT_TRUE(std::isfinite(Exp(1e300)));
}

TEST(GradientSumsTest, ARowsNumbersAreWholeUnits) {
  const GradientScale scale(GradientRange{3, 0.25});
  for (const double gradient : {-3.0, -1e-3, 0.0, 1e-12, 2.5, 3.0}) {
    for (const double hessian : {0.0, 1e-300, 0.1, 0.25}) {
      const GradientSum sum = GradientScale::Unpack(scale.Pack(gradient, hessian));
      EXPECT_NEAR(scale.gradient(sum.gradient), gradient, std::ldexp(4.0, -31));
      EXPECT_NEAR(scale.hessian(sum.hessian), hessian, std::ldexp(0.25, -30));
      EXPECT_EQ(sum.hessian > 0, hessian > 0) << "rows that count still do";
    }
  }
}

TEST(GradientSumsTest, RangesMergeInAnyOrder) {
  GradientRange a{1, 4}, b{3, 2}, whole{3, 4};
  GradientRange both = a;
  both.Merge(b);
  both.Merge(b);
  EXPECT_EQ(both.gradient, whole.gradient);
  EXPECT_EQ(both.hessian, whole.hessian);
  both.Merge({NAN, 0});
  both.Merge(a);
  EXPECT_FALSE(both.finite()) << "what is no number stays so";
}

}  // namespace
}  // namespace sluice::models::histogram
