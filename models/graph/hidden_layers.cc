#include "models/graph/hidden_layers.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"

namespace sluice::models {
namespace {

constexpr GraphActivation kActivations[] = {
    {"relu", "Relu"},
    {"tanh", "Tanh"},
    {"sigmoid", "Sigmoid"},
    {"elu", "Elu"},
    {"leaky_relu", "LeakyRelu", 0.2F},
    {"selu", "Selu", 1.67326324F, 1.05070098F},  // Klambauer and others, 2017
    {"gelu", "Gelu"},
};

}  // namespace

std::vector<std::string> ActivationNames() {
  std::vector<std::string> names;
  for (const GraphActivation& activation : kActivations) {
    names.emplace_back(activation.function);
  }
  return names;
}

const GraphActivation& FindActivation(std::string_view function) {
  const auto* activation =
      std::find_if(std::begin(kActivations), std::end(kActivations),
                   [&](const GraphActivation& known) { return known.function == function; });
  SLUICE_CHECK(activation != std::end(kActivations), "attributes name an activation that exists");
  return *activation;
}

GraphHiddenLayers GraphHiddenLayers::Of(const AttributeValues& attributes) {
  GraphHiddenLayers layers;
  layers.units = attributes.Numbers("model.hidden_units");
  layers.activation = attributes.Text("model.activation_fn").value_or("relu");
  layers.dropout = attributes.Number("model.dropout").value_or(0);
  layers.batch_norm = attributes.Flag("model.batch_norm").value_or(false);
  return layers;
}

}  // namespace sluice::models
