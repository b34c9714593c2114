#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/registry/registry.h"

// How the tables of the registry are written down. Only registry*.cc and families include this.
namespace sluice::models {

struct Range {
  std::optional<double> min, max;
};
inline Range AtLeast(double min) {
  return {min, std::nullopt};
}
inline Range Between(double min, double max) {
  return {min, max};
}

AttributeSpec Flag(std::string name, AttributeDefault default_value, std::string doc);
AttributeSpec Integer(std::string name, AttributeDefault default_value, Range range,
                      std::string doc);
AttributeSpec Number(std::string name, AttributeDefault default_value, Range range,
                     std::string doc);
AttributeSpec Text(std::string name, AttributeDefault default_value,
                   std::vector<std::string> allowed, std::string doc);
AttributeSpec List(AttributeType type, std::string name, AttributeDefault default_value,
                   Range range, std::string doc);
AttributeSpec WithAliases(AttributeSpec spec, std::vector<std::string> aliases);
void SetDefault(ModelType* type, std::string_view name, const AttributeDefault& value);
AttributeSpec Required(AttributeSpec spec);
AttributeSpec WithoutEffect(AttributeSpec spec);

// The attributes of every training: train.*, validation.*, split.*, engine.*.
std::vector<AttributeSpec> TrainingAttributes();
std::vector<ModelType> NetworkTypes();
// What every network has: its label and loss, optimizer and training. `optimizer`: the default.
void AppendNetworkAttributes(bool classification, const std::string& optimizer,
                             std::vector<AttributeSpec>* attributes);
AttributeSpec HiddenUnits(const std::string& name);
// model.PREFIXactivation_fn, _dropout, and model.batch_norm.
void AppendHidden(const std::string& prefix, std::vector<AttributeSpec>* attributes);
std::vector<ModelType> TreeTypes();
// Under the names of SQLFlow, made from `ours`.
std::vector<ModelType> SqlflowTypes(const std::vector<ModelType>& ours);

}  // namespace sluice::models
