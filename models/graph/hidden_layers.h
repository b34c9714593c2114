#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/graph/graph_builder.h"

// What attributes say of a network's hidden layers. Pure.
namespace sluice::models {

// Hidden layers, each a product, normalised over the batch or not, an activation, and dropout.
struct GraphHiddenLayers {
  std::vector<double> units;  // outputs of each
  std::string activation = "relu";
  double dropout = 0;
  bool batch_norm = false;
  // What model.hidden_units, activation_fn, dropout and batch_norm say.
  static GraphHiddenLayers Of(const AttributeValues& attributes);
};

// What model.activation_fn may be.
std::vector<std::string> ActivationNames();

// An activation of model.activation_fn: the operator, with the values of tf.nn's function where
// ONNX's defaults are others.
struct GraphActivation {
  std::string_view function;
  const char* op;
  float alpha = 0;
  float gamma = 0;
};
// `function` is one of ActivationNames().
const GraphActivation& FindActivation(std::string_view function);

}  // namespace sluice::models
