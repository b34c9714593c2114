#include "models/networks/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "models/model.pb.h"
#include "tests/models/networks/optimizer_cases.h"

namespace sluice::models {
namespace {

class OptimizerTest : public testing::TestWithParam<OptimizerCase> {};

TEST_P(OptimizerTest, P1_FollowsItsFormulaForAHundredSteps) {
  const OptimizerCase& test = GetParam();
  auto made = Optimizer::Make(OptimizerNamed(test.name, test.arguments));
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  const Optimizer& optimizer = **made;
  ASSERT_EQ(optimizer.slot_count(), test.slots);
  for (const size_t n : {1u, 8u, 37u}) {  // a row of a wide table, of an embedding, a dense span
    std::mt19937 generator(7);
    std::normal_distribution<float> normal;
    std::vector<float> values(n), slots(n * test.slots, -1), gradient(n);
    std::vector<double> reference(n);
    std::vector<OptimizerCase::State> states(n);
    for (size_t i = 0; i < n; ++i) {
      values[i] = test.name == "Ftrl" || test.name == "ftrl" ? 0 : 0.1f * normal(generator);
      reference[i] = static_cast<double>(values[i]);
    }
    optimizer.InitializeSlots(slots, n);
    for (int t = 1; t <= 100; ++t) {
      for (size_t i = 0; i < n; ++i) {
        // Decreasing gradients, for which AMSGrad's largest square differs from its mean.
        gradient[i] = (0.3f + normal(generator)) * (t < 30 ? 1.0f : 0.1f);
        test.formula(reference[i], static_cast<double>(gradient[i]), t, states[i]);
      }
      optimizer.Update(values.data(), slots.data(), gradient.data(), n, t, 1);
      for (size_t i = 0; i < n; ++i) {
        ASSERT_NEAR(values[i], reference[i], 1e-6 * std::max(1.0, 4 * std::fabs(reference[i])))
            << "step " << t << " of parameter " << i << " of " << n;
      }
    }
  }
}

TEST_P(OptimizerTest, AdoptedValuesAreNotForgotten) {
  auto made = Optimizer::Make(OptimizerNamed(GetParam().name, GetParam().arguments));
  ASSERT_TRUE(made.ok());
  std::vector<float> values = {0.5f, -0.25f, 2}, slots(3 * GetParam().slots, 9), gradient(3, 0);
  (*made)->InitializeSlots(slots, 3);
  (*made)->Adopt(values.data(), slots, 3);
  (*made)->Update(values.data(), slots.data(), gradient.data(), 3, 1, 1);
  EXPECT_NEAR(values[0], 0.5f, 1e-2);
  EXPECT_NEAR(values[1], -0.25f, 1e-2);
  EXPECT_NEAR(values[2], 2, 5e-2);  // a penalty may shrink it
}

TEST_P(OptimizerTest, AZeroGradientAtTheStartLeavesNoNan) {
  auto made = Optimizer::Make(OptimizerNamed(GetParam().name, GetParam().arguments));
  ASSERT_TRUE(made.ok());
  std::vector<float> values(5, 0.5f), slots(5 * GetParam().slots, 9), gradient(5, 0);
  (*made)->InitializeSlots(slots, 5);
  for (int t = 1; t <= 3; ++t) {
    (*made)->Update(values.data(), slots.data(), gradient.data(), 5, t, 1);
  }
  for (const float value : values) {
    EXPECT_TRUE(std::isfinite(value));
  }
}

TEST_P(OptimizerTest, AHugeStepNumberIsFine) {
  auto made = Optimizer::Make(OptimizerNamed(GetParam().name, GetParam().arguments));
  ASSERT_TRUE(made.ok());
  std::vector<float> values(3, 0.5f), slots(3 * GetParam().slots), gradient(3, 0.1f);
  (*made)->InitializeSlots(slots, 3);
  (*made)->Update(values.data(), slots.data(), gradient.data(), 3, 1'000'000'000'000, 1);
  EXPECT_TRUE(std::isfinite(values[0]));
}

INSTANTIATE_TEST_SUITE_P(All, OptimizerTest, testing::ValuesIn(OptimizerCases()),
                         [](const auto& test) { return test.param.label; });

TEST(OptimizerStepTest, StaleGradientsMoveLess) {
  auto made = Optimizer::Make(OptimizerNamed("SGD", {{"learning_rate", .5}}));
  ASSERT_TRUE(made.ok());
  float value = 1;
  const float gradient = 1;
  (*made)->Update(&value, nullptr, &gradient, 1, 1, 0.25f);
  EXPECT_FLOAT_EQ(value, 1 - 0.125f);
}

TEST(OptimizerStepTest, WeightDecayIsScaledWithTheRateAndSparesBiases) {
  const OptimizerSpec spec = OptimizerNamed("AdamW", {{"learning_rate", .1}, {"weight_decay", 1}});
  const float nothing = 0;
  for (const auto& [of, kept] : {std::pair{Optimizer::Of::kWeights, 1 - 0.25f * 0.1f},
                                 std::pair{Optimizer::Of::kBiases, 1.0f}}) {
    const auto made = Optimizer::Make(spec, of);
    ASSERT_TRUE(made.ok());
    float value = 3;
    float slots[] = {0, 0};
    (*made)->Update(&value, slots, &nothing, 1, 1, 0.25f);
    EXPECT_FLOAT_EQ(value, 3 * kept);
  }
}

// torch.optim.AdamW([w, b], lr=0.1, weight_decay=0.5) of PyTorch 1.13: w begins as [0.5, -1.5], b
// as 2.
TEST(OptimizerStepTest, WhereVectorsDecayAdamWIsPytorchs) {
  OptimizerSpec spec =
      OptimizerNamed("AdamW", {{"learning_rate", .1}, {"weight_decay", .5}, {"epsilon", 1e-8}});
  spec.set_decays_vectors(true);
  const auto weights = Optimizer::Make(spec);
  const auto biases = Optimizer::Make(spec, Optimizer::Of::kBiases);
  ASSERT_TRUE(weights.ok() && biases.ok());
  float w[] = {0.5F, -1.5F}, b[] = {2}, w_slots[4] = {}, b_slots[2] = {};
  const float gradients[][3] = {
      {0.3F, -0.2F, 0.1F}, {0.1F, 0.4F, -0.5F}, {-0.6F, 0.2F, 0.2F}, {0.05F, -0.05F, 1}};
  for (int64_t step = 1; step <= 4; ++step) {
    (*weights)->Update(w, w_slots, gradients[step - 1], 2, step, 1);
    (*biases)->Update(b, b_slots, gradients[step - 1] + 2, 1, step, 1);
  }
  EXPECT_NEAR(w[0], 0.28307053, 1e-6);
  EXPECT_NEAR(w[1], -1.25479710, 1e-6);
  EXPECT_NEAR(b[0], 1.57278430, 1e-6);
}

TEST(OptimizerStepTest, FtrlKeepsWeightsWhenAStaleGradientComes) {
  auto made = Optimizer::Make(OptimizerNamed("Ftrl", {{"learning_rate", .1}}));
  ASSERT_TRUE(made.ok());
  std::vector<float> value = {0}, slots(2);
  (*made)->InitializeSlots(slots, 1);
  const float gradient = 1;
  for (int t = 1; t <= 20; ++t) {
    (*made)->Update(value.data(), slots.data(), &gradient, 1, t, 1);
  }
  const float before = value[0];
  const float nothing = 0;
  (*made)->Update(value.data(), slots.data(), &nothing, 1, 21, 0.1f);
  EXPECT_NEAR(value[0], before, 1e-6);
}

TEST(OptimizerStepTest, NadamDoesNotDependOnWhoAskedBefore) {
  auto made = Optimizer::Make(OptimizerNamed("Nadam", {}));
  ASSERT_TRUE(made.ok());
  const auto once = [&](int64_t step) {
    std::vector<float> value = {1}, slots(2);
    (*made)->InitializeSlots(slots, 1);
    const float gradient = 0.3f;
    (*made)->Update(value.data(), slots.data(), &gradient, 1, step, 1);
    return value[0];
  };
  const float direct = once(50);
  for (int64_t step : {1, 2, 49}) {
    once(step);
  }
  EXPECT_EQ(once(50), direct);
  once(900);
  EXPECT_EQ(once(50), direct);
}

TEST(OptimizerMakeTest, UnknownNameOffersTheNearest) {
  const auto made = Optimizer::Make(OptimizerNamed("Adamm", {}));
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().code(), Code::kNotFound);
  EXPECT_NE(made.status().diagnostics()[0].hint.find("'Adam'"), std::string::npos);
}

TEST(OptimizerMakeTest, UnknownArgumentOffersTheNearest) {
  const auto made = Optimizer::Make(OptimizerNamed("Adam", {{"beta1", .9}}));
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().message(), "optimizer Adam has no argument 'beta1'");
  EXPECT_EQ(made.status().diagnostics()[0].hint, "did you mean 'beta_1'?");
}

TEST(OptimizerMakeTest, RangesAreChecked) {
  EXPECT_FALSE(Optimizer::Make(OptimizerNamed("Adam", {{"learning_rate", 0}})).ok());
  EXPECT_FALSE(Optimizer::Make(OptimizerNamed("Adam", {{"learning_rate", NAN}})).ok());
  EXPECT_FALSE(Optimizer::Make(OptimizerNamed("Adam", {{"beta_1", 1}})).ok());
  EXPECT_FALSE(Optimizer::Make(OptimizerNamed("SGD", {{"momentum", -0.1}})).ok());
  EXPECT_FALSE(Optimizer::Make(OptimizerNamed("Ftrl", {{"learning_rate_power", 0.5}})).ok());
  EXPECT_FALSE(Optimizer::Make(OptimizerNamed("SGD", {{"nesterov", 0.5}})).ok());
  const auto made = Optimizer::Make(OptimizerNamed("Adam", {{"beta_1", 1.5}}));
  EXPECT_NE(made.status().message().find("beta_1 of Adam must be between 0 and"), std::string::npos)
      << made.status().message();
}

TEST(OptimizerMakeTest, TextForANumberIsAnError) {
  OptimizerSpec spec;
  spec.set_name("SGD");
  spec.add_arguments()->set_name("learning_rate");
  spec.mutable_arguments(0)->set_text("fast");
  const auto made = Optimizer::Make(spec);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().message(), "optimizer argument 'learning_rate' must be a number");
}

TEST(OptimizerMakeTest, EveryDescribedOptimizerCanBeMade) {
  for (const OptimizerDescription& description : Optimizers()) {
    EXPECT_TRUE(Optimizer::Make(OptimizerNamed(description.name, {})).ok()) << description.name;
    for (const OptimizerArgument& argument : description.arguments) {
      EXPECT_GE(argument.default_value, argument.min) << description.name << argument.name;
      EXPECT_LE(argument.default_value, argument.max) << description.name << argument.name;
      EXPECT_FALSE(argument.doc.empty());
    }
  }
}

}  // namespace
}  // namespace sluice::models
