#include <utility>

#include "models/families/family.h"

namespace sluice::models::families {

AttributeSpec EmbeddingWidth(const std::string& name, int64_t chosen, std::string doc) {
  return Integer(name, chosen, Between(1, 4096), std::move(doc));
}

AttributeSpec Penalty() {
  return Number("model.l2", 0.0, Between(0, 1e6),
                "penalty on half the squares of a row's vectors, beside its loss");
}

std::vector<AttributeSpec> HiddenLayers() {
  std::vector<AttributeSpec> attributes = {HiddenUnits("model.hidden_units")};
  AppendHidden("", &attributes);
  return attributes;
}

std::vector<ModelType> TypesOf(const Family& family) {
  std::vector<ModelType> types;
  for (const bool classification : {true, false}) {
    const char* suffix = classification ? "Classifier" : "Regressor";
    ModelType& type = types.emplace_back();
    type.name = family.name + suffix;
    if (!family.alias.empty()) {
      type.aliases.push_back(family.alias + suffix);
    }
    type.family = ModelFamily::kDeep;
    type.task = classification ? ModelTask::kClassification : ModelTask::kRegression;
    type.doc = family.doc;
    type.default_optimizer = "Adam";
    type.default_learning_rate = family.learning_rate;
    type.attributes = family.attributes;
    type.build = family.build;
    type.towers = family.towers;
    AppendNetworkAttributes(classification, type.default_optimizer, &type.attributes);
    for (AttributeSpec& own : type.attributes) {
      if (classification && own.name == "model.loss") {
        own.allowed.insert(own.allowed.end(), family.losses.begin(), family.losses.end());
      }
    }
  }
  return types;
}

}  // namespace sluice::models::families
