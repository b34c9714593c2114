#include "models/networks/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "models/model.pb.h"

namespace sluice::models {
namespace {

using Arguments = std::vector<std::pair<std::string, double>>;

OptimizerSpec OptimizerNamed(const std::string& name, const Arguments& arguments) {
  OptimizerSpec spec;
  spec.set_name(name);
  for (const auto& [argument, value] : arguments) {
    Attribute* attribute = spec.add_arguments();
    attribute->set_name(argument);
    attribute->set_number(value);
  }
  return spec;
}

// One parameter in double precision, directly by the papers; `s` holds its state.
using State = std::map<std::string, double>;
using Formula = std::function<void(double& p, double g, int t, State& s)>;

struct Case {
  std::string label;
  std::string name;
  Arguments arguments;
  size_t slots;
  Formula formula;
};

double NadamMu(double b1, int t) {
  return b1 * (1 - 0.5 * std::pow(0.96, t * 0.004));
}

Formula AdamFormula(double lr, double b1, double b2, bool amsgrad) {
  return [=](double& p, double g, int t, State& s) {
    s["m"] = b1 * s["m"] + (1 - b1) * g;
    s["v"] = b2 * s["v"] + (1 - b2) * g * g;
    s["max"] = std::max(s["max"], s["v"]);
    const double rate = lr * std::sqrt(1 - std::pow(b2, t)) / (1 - std::pow(b1, t));
    p -= rate * s["m"] / (std::sqrt(amsgrad ? s["max"] : s["v"]) + 1e-7);
  };
}

Formula FtrlFormula(double lr, double power, double start, double l1, double l2, double shrink,
                    double beta) {
  return [=](double& p, double g, int t, State& s) {
    if (t == 1) {
      s["n"] = start;
    }
    const double n = s["n"] + g * g;
    const double sigma = (std::pow(n, -power) - std::pow(s["n"], -power)) / lr;
    s["z"] += g + 2 * shrink * p - sigma * p;
    s["n"] = n;
    const double sign = s["z"] > 0 ? 1 : -1;
    p = std::fabs(s["z"]) <= l1
            ? 0
            : (sign * l1 - s["z"]) / ((beta + std::pow(n, -power)) / lr + 2 * l2);
  };
}

Formula RmspropFormula(double lr, double rho, double momentum, bool centered) {
  return [=](double& p, double g, int, State& s) {
    s["v"] = rho * s["v"] + (1 - rho) * g * g;
    s["m"] = rho * s["m"] + (1 - rho) * g;
    const double variance = centered ? s["v"] - s["m"] * s["m"] : s["v"];
    s["b"] = momentum * s["b"] + lr * g / (std::sqrt(variance) + 1e-7);
    p -= s["b"];
  };
}

const std::vector<Case>& Cases() {
  static const std::vector<Case> cases = {
      {"Sgd",
       "SGD",
       {{"learning_rate", .1}},
       0,
       [](double& p, double g, int, State&) { p -= .1 * g; }},
      {"SgdMomentum",
       "sgd",
       {{"learning_rate", .1}, {"momentum", .8}},
       1,
       [](double& p, double g, int, State& s) {
         s["v"] = .8 * s["v"] - .1 * g;
         p += s["v"];
       }},
      {"Momentum",
       "Momentum",
       {{"learning_rate", .1}},
       1,
       [](double& p, double g, int, State& s) {
         s["v"] = .9 * s["v"] - .1 * g;
         p += s["v"];
       }},
      {"Nesterov",
       "Nesterov",
       {{"learning_rate", .1}},
       1,
       [](double& p, double g, int, State& s) {
         s["v"] = .9 * s["v"] - .1 * g;
         p += .9 * s["v"] - .1 * g;
       }},
      {"Adagrad",
       "Adagrad",
       {{"learning_rate", .1}},
       1,
       [](double& p, double g, int t, State& s) {
         s["a"] = (t == 1 ? .1 : s["a"]) + g * g;
         p -= .1 * g / (std::sqrt(s["a"]) + 1e-7);
       }},
      {"Adam", "Adam", {{"learning_rate", .01}}, 2, AdamFormula(.01, .9, .999, false)},
      {"AdamBetas",
       "adam",
       {{"learning_rate", .01}, {"beta_1", .5}, {"beta_2", .9}},
       2,
       AdamFormula(.01, .5, .9, false)},
      {"AdamW",
       "adamw",
       {{"learning_rate", .01}},
       2,
       [](double& p, double g, int t, State& s) {
         p -= .01 * .01 * p;
         AdamFormula(.01, .9, .999, false)(p, g, t, s);
       }},
      {"AdamWDecay",
       "AdamW",
       {{"learning_rate", .01}, {"weight_decay", 2}},
       2,
       [](double& p, double g, int t, State& s) {
         p -= .01 * 2 * p;
         AdamFormula(.01, .9, .999, false)(p, g, t, s);
       }},
      {"AmsgradFlag",
       "Adam",
       {{"learning_rate", .01}, {"beta_2", .7}, {"amsgrad", 1}},
       3,
       AdamFormula(.01, .9, .7, true)},
      {"Amsgrad",
       "AMSGrad",
       {{"learning_rate", .01}, {"beta_2", .7}},
       3,
       AdamFormula(.01, .9, .7, true)},
      {"Adamax",
       "Adamax",
       {{"learning_rate", .01}},
       2,
       [](double& p, double g, int t, State& s) {
         s["m"] = .9 * s["m"] + .1 * g;
         s["u"] = std::max(.999 * s["u"], std::fabs(g));
         p -= .01 / (1 - std::pow(.9, t)) * s["m"] / (s["u"] + 1e-7);
       }},
      {"Nadam",
       "Nadam",
       {{"learning_rate", .01}},
       2,
       [](double& p, double g, int t, State& s) {
         double product = 1;
         for (int i = 1; i <= t; ++i) {
           product *= NadamMu(.9, i);
         }
         s["m"] = .9 * s["m"] + .1 * g;
         s["v"] = .999 * s["v"] + .001 * g * g;
         const double mean = NadamMu(.9, t + 1) * s["m"] / (1 - product * NadamMu(.9, t + 1)) +
                             (1 - NadamMu(.9, t)) * g / (1 - product);
         p -= .01 * mean / (std::sqrt(s["v"] / (1 - std::pow(.999, t))) + 1e-7);
       }},
      {"Rmsprop", "RMSprop", {{"learning_rate", .01}}, 1, RmspropFormula(.01, .9, 0, false)},
      {"RmspropMomentum",
       "RMSprop",
       {{"learning_rate", .01}, {"momentum", .5}},
       2,
       RmspropFormula(.01, .9, .5, false)},
      {"RmspropCentered",
       "RMSprop",
       {{"learning_rate", .01}, {"centered", 1}},
       2,
       RmspropFormula(.01, .9, 0, true)},
      {"RmspropBoth",
       "RMSprop",
       {{"learning_rate", .01}, {"rho", .8}, {"momentum", .5}, {"centered", 1}},
       3,
       RmspropFormula(.01, .8, .5, true)},
      {"Adadelta",
       "Adadelta",
       {{"learning_rate", 1}},
       2,
       [](double& p, double g, int, State& s) {
         s["v"] = .95 * s["v"] + .05 * g * g;
         const double change = std::sqrt(s["x"] + 1e-7) / std::sqrt(s["v"] + 1e-7) * g;
         s["x"] = .95 * s["x"] + .05 * change * change;
         p -= change;
       }},
      {"Ftrl", "Ftrl", {{"learning_rate", .1}}, 2, FtrlFormula(.1, -.5, .1, 0, 0, 0, 0)},
      {"FtrlPenalties",
       "ftrl",
       {{"learning_rate", .1},
        {"l1_regularization_strength", .5},
        {"l2_regularization_strength", .3},
        {"l2_shrinkage_regularization_strength", .05},
        {"beta", .2}},
       2,
       FtrlFormula(.1, -.5, .1, .5, .3, .05, .2)},
      {"FtrlPower",
       "Ftrl",
       {{"learning_rate", .1}, {"learning_rate_power", -.7}, {"l1_regularization_strength", .1}},
       2,
       FtrlFormula(.1, -.7, .1, .1, 0, 0, 0)},
  };
  return cases;
}

class OptimizerTest : public testing::TestWithParam<Case> {};

TEST_P(OptimizerTest, P1_FollowsItsFormulaForAHundredSteps) {
  const Case& test = GetParam();
  auto made = Optimizer::Make(OptimizerNamed(test.name, test.arguments));
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  const Optimizer& optimizer = **made;
  ASSERT_EQ(optimizer.slot_count(), test.slots);
  for (const size_t n : {1u, 8u, 37u}) {  // a row of a wide table, of an embedding, a dense span
    std::mt19937 generator(7);
    std::normal_distribution<float> normal;
    std::vector<float> values(n), slots(n * test.slots, -1), gradient(n);
    std::vector<double> reference(n);
    std::vector<State> states(n);
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

INSTANTIATE_TEST_SUITE_P(All, OptimizerTest, testing::ValuesIn(Cases()),
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

// torch.optim.AdamW([w, b], lr=0.1, weight_decay=0.5) of PyTorch 1.13: w begins as [0.5, -1.5], b as 2.
TEST(OptimizerStepTest, WhereVectorsDecayAdamWIsPytorchs) {
  OptimizerSpec spec = OptimizerNamed(
      "AdamW", {{"learning_rate", .1}, {"weight_decay", .5}, {"epsilon", 1e-8}});
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
