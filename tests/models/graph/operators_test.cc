#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/models/graph/operator_cases.h"

namespace sluice::models::graph {
namespace {

class OperatorTest : public ::testing::TestWithParam<OperatorCase> {
 protected:
  OperatorTest() { graph_ = builder_.Output(GetParam().build(builder_)); }
  void Prepare(TestedGraph* tested) const {
    for (size_t p = 0; GetParam().positive && p < tested->parameters(); ++p) {
      std::vector<float>& values = tested->Values(p);
      const std::vector<float> positive =
          TestedGraph::Spread(values.size(), static_cast<uint32_t>(p) + 20, 0.6F, 1.9F);
      std::copy(positive.begin(), positive.end(), values.begin());
    }
  }
  GraphBuilder builder_;
  NetworkGraph graph_;
};

// Central differences of two widths, whose cubic errors cancel; nothing where they are far apart: a
// kink lies between.
std::optional<double> SlopeAlong(TestedGraph* tested, float* value) {
  const float before = *value;
  const auto central = [&](float width) {
    *value = before + width;
    const double high = static_cast<double>(*value);
    const double above = tested->Sum();
    *value = before - width;
    const double slope = (above - tested->Sum()) / (high - static_cast<double>(*value));
    *value = before;
    return slope;
  };
  const double narrow = central(0.01F);
  const double wide = central(0.02F);
  constexpr double kKink = 0.003;
  if (std::fabs(wide - narrow) > kKink * std::max(1.0, std::fabs(narrow))) {
    return std::nullopt;
  }
  return (4 * narrow - wide) / 3;
}

TEST_P(OperatorTest, GradientIsTheSlope) {
  TestedGraph tested(graph_, ActiveKernels());
  ASSERT_TRUE(tested.ok());
  Prepare(&tested);
  tested.Sum();
  tested.Backward();
  for (size_t p = 0; p < tested.parameters(); ++p) {
    const std::vector<size_t>& not_learnt = GetParam().not_learnt;
    if (std::find(not_learnt.begin(), not_learnt.end(), p) != not_learnt.end()) {
      continue;
    }
    double error = 0;
    double norm = 0;
    size_t kinks = 0;
    for (size_t i = 0; i < tested.Values(p).size(); ++i) {
      const std::optional<double> slope = SlopeAlong(&tested, &tested.Values(p)[i]);
      if (!slope) {
        ++kinks;
        continue;
      }
      const double distance = *slope - static_cast<double>(tested.GradientOf(p)[i]);
      error += distance * distance;
      norm += *slope * *slope;
    }
    EXPECT_LE(3 * kinks, tested.Values(p).size()) << tested.Name(p);
    EXPECT_LT(std::sqrt(error), 1e-4 * std::max(1.0, std::sqrt(norm))) << tested.Name(p);
  }
}

TEST_P(OperatorTest, AllFusedKernelsGiveTheSameBits) {
  std::vector<std::vector<float>> outcomes;
  for (const Kernels* kernels : SupportedKernels()) {
    TestedGraph tested(graph_, *kernels);
    ASSERT_TRUE(tested.ok());
    Prepare(&tested);
    std::vector<float> outcome = tested.Forward();
    tested.Backward();
    for (size_t p = 0; p < tested.parameters(); ++p) {
      const std::vector<float>& gradient = tested.GradientOf(p);
      outcome.insert(outcome.end(), gradient.begin(), gradient.end());
    }
    if (std::string(kernels->name) != "SSE2" && !outcomes.empty()) {
      ASSERT_EQ(outcome.size(), outcomes.front().size());
      EXPECT_EQ(
          std::memcmp(outcome.data(), outcomes.front().data(), outcome.size() * sizeof(float)), 0)
          << kernels->name;
    } else if (!outcomes.empty()) {  // has no fused operations
      for (size_t i = 0; i < outcome.size(); ++i) {
        EXPECT_NEAR(outcome[i], outcomes.front()[i], 1e-5F * (1 + std::fabs(outcome[i])));
      }
    }
    outcomes.push_back(std::move(outcome));
  }
}

// What is not a number anywhere must not look healthy at the end.
TEST_P(OperatorTest, NotANumberIsSeen) {
  TestedGraph tested(graph_, ActiveKernels());
  ASSERT_TRUE(tested.ok());
  Prepare(&tested);
  if (GetParam().op == "Where" || GetParam().op == "Split" || GetParam().op == "Slice" ||
      GetParam().op == "Gather" || GetParam().op == "GatherElements" ||
      GetParam().op == "Dropout") {
    GTEST_SKIP() << "chooses";
  }
  std::vector<float>& values = tested.Values(0);
  std::fill(values.begin(), values.end(), std::nanf(""));
  EXPECT_TRUE(std::isnan(tested.Sum()));
}

TEST_P(OperatorTest, TheSameAgain) {
  TestedGraph tested(graph_, ActiveKernels());
  ASSERT_TRUE(tested.ok());
  Prepare(&tested);
  const std::vector<float> first = tested.Forward();
  tested.Backward();
  std::vector<std::vector<float>> gradients;
  for (size_t p = 0; p < tested.parameters(); ++p) {
    gradients.push_back(tested.GradientOf(p));
  }
  EXPECT_EQ(tested.Forward(), first);
  tested.Backward();
  for (size_t p = 0; p < tested.parameters(); ++p) {
    EXPECT_EQ(tested.GradientOf(p), gradients[p]) << tested.Name(p);
  }
}

INSTANTIATE_TEST_SUITE_P(All, OperatorTest, ::testing::ValuesIn(OperatorCases()),
                         [](const auto& test) { return test.param.name; });

TEST(OperatorTableTest, EachIsTested) {
  std::set<std::string> tested = {"Constant", "EmbeddingBag", "Equal", "Less", "Greater",
                                  "And",      "Or",           "Not",   "IsNaN"};  // see below
  for (const OperatorCase& test : OperatorCases()) {
    tested.insert(test.op);
  }
  for (const OperatorEntry& entry : Operators()) {
    EXPECT_TRUE(tested.contains(std::string(entry.name))) << entry.name;
  }
}

}  // namespace
}  // namespace sluice::models::graph
