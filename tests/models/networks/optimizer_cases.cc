#include "tests/models/networks/optimizer_cases.h"

#include <algorithm>
#include <cmath>

namespace sluice::models {
namespace {

double NadamMu(double b1, int t) {
  return b1 * (1 - 0.5 * std::pow(0.96, t * 0.004));
}

OptimizerCase::Formula AdamFormula(double lr, double b1, double b2, bool amsgrad) {
  return [=](double& p, double g, int t, OptimizerCase::State& s) {
    s["m"] = b1 * s["m"] + (1 - b1) * g;
    s["v"] = b2 * s["v"] + (1 - b2) * g * g;
    s["max"] = std::max(s["max"], s["v"]);
    const double rate = lr * std::sqrt(1 - std::pow(b2, t)) / (1 - std::pow(b1, t));
    p -= rate * s["m"] / (std::sqrt(amsgrad ? s["max"] : s["v"]) + 1e-7);
  };
}

OptimizerCase::Formula FtrlFormula(double lr, double power, double start, double l1, double l2,
                                   double shrink, double beta) {
  return [=](double& p, double g, int t, OptimizerCase::State& s) {
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

OptimizerCase::Formula RmspropFormula(double lr, double rho, double momentum, bool centered) {
  return [=](double& p, double g, int, OptimizerCase::State& s) {
    s["v"] = rho * s["v"] + (1 - rho) * g * g;
    s["m"] = rho * s["m"] + (1 - rho) * g;
    const double variance = centered ? s["v"] - s["m"] * s["m"] : s["v"];
    s["b"] = momentum * s["b"] + lr * g / (std::sqrt(variance) + 1e-7);
    p -= s["b"];
  };
}

}  // namespace

OptimizerSpec OptimizerNamed(const std::string& name, const OptimizerCase::Arguments& arguments) {
  OptimizerSpec spec;
  spec.set_name(name);
  for (const auto& [argument, value] : arguments) {
    Attribute* attribute = spec.add_arguments();
    attribute->set_name(argument);
    attribute->set_number(value);
  }
  return spec;
}

const std::vector<OptimizerCase>& OptimizerCases() {
  static const std::vector<OptimizerCase> cases = {
      {"Sgd",
       "SGD",
       {{"learning_rate", .1}},
       0,
       [](double& p, double g, int, OptimizerCase::State&) { p -= .1 * g; }},
      {"SgdMomentum",
       "sgd",
       {{"learning_rate", .1}, {"momentum", .8}},
       1,
       [](double& p, double g, int, OptimizerCase::State& s) {
         s["v"] = .8 * s["v"] - .1 * g;
         p += s["v"];
       }},
      {"Momentum",
       "Momentum",
       {{"learning_rate", .1}},
       1,
       [](double& p, double g, int, OptimizerCase::State& s) {
         s["v"] = .9 * s["v"] - .1 * g;
         p += s["v"];
       }},
      {"Nesterov",
       "Nesterov",
       {{"learning_rate", .1}},
       1,
       [](double& p, double g, int, OptimizerCase::State& s) {
         s["v"] = .9 * s["v"] - .1 * g;
         p += .9 * s["v"] - .1 * g;
       }},
      {"Adagrad",
       "Adagrad",
       {{"learning_rate", .1}},
       1,
       [](double& p, double g, int t, OptimizerCase::State& s) {
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
       [](double& p, double g, int t, OptimizerCase::State& s) {
         p -= .01 * .01 * p;
         AdamFormula(.01, .9, .999, false)(p, g, t, s);
       }},
      {"AdamWDecay",
       "AdamW",
       {{"learning_rate", .01}, {"weight_decay", 2}},
       2,
       [](double& p, double g, int t, OptimizerCase::State& s) {
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
       [](double& p, double g, int t, OptimizerCase::State& s) {
         s["m"] = .9 * s["m"] + .1 * g;
         s["u"] = std::max(.999 * s["u"], std::fabs(g));
         p -= .01 / (1 - std::pow(.9, t)) * s["m"] / (s["u"] + 1e-7);
       }},
      {"Nadam",
       "Nadam",
       {{"learning_rate", .01}},
       2,
       [](double& p, double g, int t, OptimizerCase::State& s) {
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
       [](double& p, double g, int, OptimizerCase::State& s) {
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

}  // namespace sluice::models
