#include "models/networks/optimizer.h"

namespace sluice::models {
namespace {

// Ranges shared by several rules. A rate of zero trains nothing; an epsilon of zero divides by zero
// for a parameter whose gradient is always zero.
constexpr double kSmallestRate = 1e-12;
constexpr double kLargestRate = 1000;
constexpr double kSmallestEpsilon = 1e-12;
constexpr double kLargestEpsilon = 10;
constexpr double kLargestDecay = 0.9999999;  // a moving average must forget at some rate
constexpr double kLargestStrength = 1e6;
constexpr double kLargestWeightDecay = 1000;

OptimizerArgument Rate(double value) {
  return {"learning_rate", value, false, kSmallestRate, kLargestRate, "step size"};
}
OptimizerArgument Epsilon() {
  return {"epsilon",       1e-7,
          false,           kSmallestEpsilon,
          kLargestEpsilon, "added to the denominator for numerical stability"};
}
OptimizerArgument Decay(const char* name, double value, const char* doc) {
  return {name, value, false, 0, kLargestDecay, doc};
}
OptimizerArgument Switch(const char* name, bool value, const char* doc) {
  return {name, value ? 1.0 : 0.0, true, 0, 1, doc};
}
OptimizerArgument Strength(const char* name, const char* doc) {
  return {name, 0, false, 0, kLargestStrength, doc};
}

std::vector<OptimizerArgument> AdamArguments() {
  return {Rate(.001), Decay("beta_1", .9, "decay of the mean of gradients"),
          Decay("beta_2", .999, "decay of the mean of squared gradients"), Epsilon()};
}

std::vector<OptimizerDescription> MakeOptimizers() {
  std::vector<OptimizerDescription> all;
  all.push_back({"SGD",
                 {Rate(.01), Decay("momentum", 0, "share of the last step that is kept"),
                  Switch("nesterov", false, "look ahead along the momentum (Nesterov)")}});
  all.push_back({"Momentum",
                 {Rate(.01), Decay("momentum", .9, "share of the last step that is kept"),
                  Switch("nesterov", false, "look ahead along the momentum (Nesterov)")}});
  all.push_back(
      {"Nesterov", {Rate(.01), Decay("momentum", .9, "share of the last step that is kept")}});
  all.push_back({"Adagrad",
                 {Rate(.001),
                  {"initial_accumulator_value", .1, false, 0, kLargestStrength,
                   "start of the sum of squared gradients"},
                  Epsilon()}});
  all.push_back({"Adam", AdamArguments()});
  all.back().arguments.push_back(
      Switch("amsgrad", false, "divide by the largest mean of squares so far (AMSGrad)"));
  all.push_back({"AdamW", AdamArguments()});
  all.back().arguments.push_back({"weight_decay", .01, false, 0, kLargestWeightDecay,
                                  "share of each weight that a step takes off, times the learning "
                                  "rate; biases keep theirs (AdamW)"});
  all.push_back({"AMSGrad", AdamArguments()});
  all.push_back({"Adamax", AdamArguments()});
  all.push_back({"Nadam", AdamArguments()});
  all.push_back({"RMSprop",
                 {Rate(.001), Decay("rho", .9, "decay of the mean of squared gradients"),
                  Decay("momentum", 0, "share of the last step that is kept"), Epsilon(),
                  Switch("centered", false, "divide by the variance, not the mean square")}});
  all.push_back(
      {"Adadelta", {Rate(.001), Decay("rho", .95, "decay of the means of squares"), Epsilon()}});
  all.push_back(
      {"Ftrl",
       {Rate(.001),
        {"learning_rate_power", -.5, false, -2, 0, "how fast rates fall with the gradients seen"},
        {"initial_accumulator_value", .1, false, 0, kLargestStrength,
         "start of the sum of squared gradients"},
        Strength("l1_regularization_strength", "L1 penalty: weights become exactly zero"),
        Strength("l2_regularization_strength", "L2 penalty: weights become small"),
        Strength("l2_shrinkage_regularization_strength", "L2 penalty on the weights of the step"),
        Strength("beta", "added to the square root of the sum of squares")}});
  return all;
}

}  // namespace

const std::vector<OptimizerDescription>& Optimizers() {
  static const std::vector<OptimizerDescription> optimizers = MakeOptimizers();
  return optimizers;
}

}  // namespace sluice::models
