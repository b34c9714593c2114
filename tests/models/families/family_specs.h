#pragma once

#include <string>
#include <vector>

#include "models/registry/registry.h"
#include "tests/models/networks/network_rows.h"

namespace sluice::models {

// What a statement without WITH says: every attribute of the model that has a default.
inline void AddDefaults(const ModelType& type, ModelSpec* spec) {
  for (const AttributeSpec& own : type.attributes) {
    if (!own.name.starts_with("model.") && !own.name.starts_with("loss.")) {
      continue;
    }
    Attribute attribute;
    attribute.set_name(own.name);
    if (const auto* flag = std::get_if<bool>(&own.default_value)) {
      attribute.set_flag(*flag);
    } else if (const auto* integer = std::get_if<int64_t>(&own.default_value)) {
      attribute.set_integer(*integer);
    } else if (const auto* number = std::get_if<double>(&own.default_value)) {
      attribute.set_number(*number);
    } else if (const auto* text = std::get_if<std::string>(&own.default_value)) {
      attribute.set_text(*text);
    } else if (const auto* list = std::get_if<std::vector<double>>(&own.default_value)) {
      attribute.mutable_numbers()->mutable_values()->Assign(list->begin(), list->end());
    } else {
      continue;
    }
    *spec->add_attributes() = attribute;
  }
}

inline Attribute* AttributeOf(ModelSpec* spec, const std::string& name) {
  for (Attribute& attribute : *spec->mutable_attributes()) {
    if (attribute.name() == name) {
      return &attribute;
    }
  }
  Attribute* attribute = spec->add_attributes();
  attribute->set_name(name);
  return attribute;
}

// What is stored with a model of the type: the graph of a family, nothing of the layers of others,
// which have batch normalisation here.
inline void Build(const ModelType& type, ModelSpec* spec) {
  if (!type.build) {
    AttributeOf(spec, "model.batch_norm")->set_flag(true);
    return;
  }
  const auto built = BuildGraph(type.build, spec);
  EXPECT_TRUE(built.ok()) << type.name << ": " << built.status().ToString();
}

// Networks that take any columns; MatrixFactorization, which does not, is tested by
// tests/sql/matrix_factorization.slt, TwoTower by two_tower_test.cc.
inline std::vector<const ModelType*> BuiltTypes() {
  std::vector<const ModelType*> types;
  for (const ModelType& type : ModelTypes()) {
    if (type.family != ModelFamily::kTrees && type.towers.empty() &&
        !type.name.starts_with("sqlflow_models.") &&
        !type.name.starts_with("MatrixFactorization")) {
      types.push_back(&type);
    }
  }
  return types;
}

inline ModelSpec OfType(const ModelType& type, ModelSpec features, int classes = 2) {
  features.set_type(type.name);
  AddDefaults(type, &features);
  return type.task == ModelTask::kClassification ? Classes(std::move(features), classes)
                                                 : Numbers(std::move(features));
}

}  // namespace sluice::models
