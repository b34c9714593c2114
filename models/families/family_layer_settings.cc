#include "models/families/family_layer_settings.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "models/model.pb.h"

namespace sluice::models::families {
namespace {

// A wider layer is a mistake in the statement (a kernel of 2^36 weights).
constexpr double kWidestLayer = 1 << 18;
constexpr int kMaxLayers = 64;

// An attribute by its name after "model.", with or without the "dnn_" of the combined types.
const Attribute* FindModelAttribute(const ModelSpec& spec, std::string_view name) {
  for (const Attribute& attribute : spec.attributes()) {
    std::string_view own = attribute.name();
    for (const std::string_view prefix : {"model.", "dnn_", "linear_"}) {
      if (own.substr(0, prefix.size()) == prefix) {
        own.remove_prefix(prefix.size());
      }
    }
    if (own == name) {
      return &attribute;
    }
  }
  return nullptr;
}

Status Wrong(const Attribute& attribute, std::string_view expected) {
  return InvalidArgument(fmt::format("attribute {} must be {}", attribute.name(), expected));
}

Status SetUnits(const ModelSpec& spec, GraphHiddenLayers* layers) {
  const Attribute* attribute = FindModelAttribute(spec, "hidden_units");
  if (attribute == nullptr) {
    return InvalidArgument(fmt::format("{} needs model.hidden_units", spec.type()))
        .Hint("for example model.hidden_units=[64,32]");
  }
  const int count = attribute->numbers().values_size();
  if (count == 0 || count > kMaxLayers) {
    return Wrong(*attribute, fmt::format("a list of 1 to {} layers, not of {}", kMaxLayers, count))
        .Hint(count == 0 ? "for example [64, 32]; a model without hidden layers is a "
                           "LinearClassifier or LinearRegressor"
                         : "few networks on tables gain from more than four");
  }
  for (const double width : attribute->numbers().values()) {
    if (!(width >= 1 && width <= kWidestLayer && width == std::floor(width))) {
      return Wrong(*attribute, fmt::format("a list of whole numbers between 1 and {}, not {}",
                                           kWidestLayer, width));
    }
    layers->units.push_back(width);
  }
  return OkStatus();
}

Status SetActivation(const ModelSpec& spec, GraphHiddenLayers* layers) {
  const Attribute* attribute = FindModelAttribute(spec, "activation_fn");
  if (attribute == nullptr || attribute->text().empty()) {
    return OkStatus();
  }
  const std::vector<std::string> names = ActivationNames();
  layers->activation = attribute->text();
  if (std::find(names.begin(), names.end(), attribute->text()) != names.end()) {
    return OkStatus();
  }
  Status status = NotFound(
      fmt::format("no activation '{}' for attribute {}", attribute->text(), attribute->name()));
  if (const auto near = NearestName(attribute->text(), names)) {
    return std::move(status).Hint(fmt::format("did you mean '{}'?", *near));
  }
  return std::move(status).Hint(fmt::format("{}", fmt::join(names, ", ")));
}

Status SetRegularisation(const ModelSpec& spec, GraphHiddenLayers* layers) {
  if (const Attribute* attribute = FindModelAttribute(spec, "dropout")) {
    const bool integer = attribute->value_case() == Attribute::kInteger;
    layers->dropout = integer ? static_cast<double>(attribute->integer()) : attribute->number();
    if (!(layers->dropout >= 0 && layers->dropout < 1)) {
      return Wrong(*attribute, fmt::format("at least 0 and less than 1, not {}", layers->dropout));
    }
  }
  const Attribute* batch_norm = FindModelAttribute(spec, "batch_norm");
  layers->batch_norm = batch_norm != nullptr && batch_norm->flag();
  return OkStatus();
}

}  // namespace

Result<std::string> WideCombiner(const ModelSpec& spec) {
  const Attribute* attribute = FindModelAttribute(spec, "sparse_combiner");
  return CheckCombiner(attribute == nullptr ? "" : attribute->text(), "attribute sparse_combiner");
}

Result<GraphHiddenLayers> HiddenLayersOf(const ModelSpec& spec) {
  GraphHiddenLayers layers;
  RETURN_IF_ERROR(SetUnits(spec, &layers));
  RETURN_IF_ERROR(SetActivation(spec, &layers));
  RETURN_IF_ERROR(SetRegularisation(spec, &layers));
  return layers;
}

Result<std::string> CheckCombiner(const std::string& name, const std::string& of) {
  if (name.empty()) {
    return std::string("sum");
  }
  if (name == "sum" || name == "mean" || name == "sqrtn") {
    return name;
  }
  return NotFound(fmt::format("no combiner '{}' for {}", name, of)).Hint("sum, mean or sqrtn");
}

}  // namespace sluice::models::families
