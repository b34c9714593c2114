#include "models/registry/registry.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/letter_case.h"
#include "base/status.h"
#include "models/families/family.h"
#include "models/model.pb.h"
#include "models/registry/registry_internal.h"

namespace sluice::models {
namespace {

std::vector<ModelType> MakeModelTypes() {
  std::vector<ModelType> types = NetworkTypes();
  for (std::vector<ModelType>& more : std::vector{families::Types(), TreeTypes()}) {
    std::move(more.begin(), more.end(), std::back_inserter(types));
  }
  std::vector<ModelType> sqlflow = SqlflowTypes(types);
  std::move(sqlflow.begin(), sqlflow.end(), std::back_inserter(types));
  return types;
}

// "train.num_boost_round" -> "num_boost_round".
std::string_view WithoutPrefix(std::string_view name) {
  const size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

struct KnownMistake {
  std::string_view name;
  std::string_view hint;
};

// Names from SQLFlow's documents, TensorFlow or XGBoost, and their equivalents here.
constexpr KnownMistake kKnownMistakes[] = {
    {"booster", "the model type names the booster: xgboost.gbtree, xgboost.dart, xgboost.gblinear"},
    {"sketch_eps", "use max_bin, about 1 / sketch_eps"},
    {"model.feature_columns", "features are named by COLUMN"},
    {"model.linear_feature_columns", "write COLUMN ... FOR linear_feature_columns"},
    {"model.dnn_feature_columns", "write COLUMN ... FOR dnn_feature_columns"},
    {"model.warm_start_from", "write USING model before INTO to continue from a model"},
    {"model.model_dir", "models are kept in the catalog; INTO names them"},
    {"model.config", "engine.* and train.* hold what a run configuration holds"},
};

}  // namespace

std::string_view AttributeTypeName(AttributeType type) {
  switch (type) {
    case AttributeType::kFlag:
      return "true or false";
    case AttributeType::kInteger:
      return "integer";
    case AttributeType::kNumber:
      return "number";
    case AttributeType::kText:
      return "text";
    case AttributeType::kIntegerList:
      return "list of integers";
    case AttributeType::kNumberList:
      return "list of numbers";
    case AttributeType::kTextList:
      return "list of texts";
  }
  return "unknown";
}

const std::vector<ModelType>& ModelTypes() {
  static const std::vector<ModelType> types = MakeModelTypes();
  return types;
}

const ModelType* FindModelType(std::string_view name) {
  for (const ModelType& type : ModelTypes()) {
    if (SameIgnoringCase(type.name, name) ||
        std::any_of(type.aliases.begin(), type.aliases.end(),
                    [name](const std::string& alias) { return SameIgnoringCase(alias, name); })) {
      return &type;
    }
  }
  return nullptr;
}

bool IsTrees(const ModelSpec& spec) {
  const ModelType* type = FindModelType(spec.type());
  return type != nullptr && type->family == ModelFamily::kTrees;
}

const AttributeSpec* FindAttribute(const ModelType& type, std::string_view name) {
  for (const AttributeSpec& spec : type.attributes) {
    if (SameIgnoringCase(spec.name, name) ||
        std::any_of(spec.aliases.begin(), spec.aliases.end(),
                    [name](const std::string& alias) { return SameIgnoringCase(alias, name); })) {
      return &spec;
    }
  }
  return nullptr;
}

std::string UnknownAttributeHint(const ModelType& type, std::string_view name) {
  for (const KnownMistake& mistake : kKnownMistakes) {
    if (SameIgnoringCase(mistake.name, name)) {
      return std::string(mistake.hint);
    }
  }
  std::vector<std::string> names;
  for (const AttributeSpec& spec : type.attributes) {
    const auto same_end = [name](const std::string& own) {
      return SameIgnoringCase(WithoutPrefix(own), WithoutPrefix(name));
    };
    if (same_end(spec.name) || std::any_of(spec.aliases.begin(), spec.aliases.end(), same_end)) {
      return "did you mean '" + spec.name + "'?";
    }
    names.push_back(spec.name);
  }
  if (type.family == ModelFamily::kTrees && SameIgnoringCase(type.name, "xgboost.gblinear")) {
    const ModelType* trees = FindModelType("xgboost.gbtree");
    if (trees != nullptr && FindAttribute(*trees, name) != nullptr) {
      return "xgboost.gblinear grows no trees; xgboost.gbtree has this attribute";
    }
  }
  if (const std::optional<std::string> nearest = NearestName(name, names)) {
    return "did you mean '" + *nearest + "'?";
  }
  return "";
}

std::optional<std::string> CanonicalChoice(const AttributeSpec& spec, std::string_view text) {
  if (spec.allowed.empty()) {
    return std::string(text);
  }
  const size_t at = text.find('@');
  for (const std::string& choice : spec.allowed) {
    if (SameIgnoringCase(choice, text)) {
      return choice;
    }
    const bool takes_number = choice.size() > 2 && choice.ends_with("@n");
    if (takes_number && at != std::string_view::npos &&
        SameIgnoringCase(std::string_view(choice).substr(0, choice.size() - 2),
                         text.substr(0, at))) {
      const std::string_view number = text.substr(at + 1);
      // A trailing '-' is XGBoost's notation: lists without a relevant row count as 0 instead of 1.
      const size_t digits = number.find_first_not_of("0123456789.");
      if (!number.empty() && digits != 0 &&
          (digits == std::string_view::npos || number.substr(digits) == "-")) {
        return choice.substr(0, choice.size() - 1) + std::string(number);
      }
    }
  }
  return std::nullopt;
}

}  // namespace sluice::models
