#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "models/graph/graph_builder.h"

namespace sluice::models {

class ModelSpec;

enum class AttributeType { kFlag, kInteger, kNumber, kText, kIntegerList, kNumberList, kTextList };
std::string_view AttributeTypeName(AttributeType type);  // "integer", "list of integers" ...

using AttributeDefault =
    std::variant<std::monostate, bool, int64_t, double, std::string, std::vector<double>>;

// One attribute, declared once: the binder validates with it, DESCRIBE MODEL TYPE prints it, and
// the reference page is generated from it.
struct AttributeSpec {
  std::string name;  // "model.hidden_units", "eta", "train.epoch"
  AttributeType type = AttributeType::kText;
  AttributeDefault default_value;  // monostate: none
  bool required = false;
  std::optional<double> min, max;  // inclusive
  // kText: closed set, any case; empty = any. An entry "ndcg@n" takes any number after the '@'.
  std::vector<std::string> allowed;
  bool or_number = false;            // a number may stand in place of kText, or of a list
  bool or_map = false;               // kText: so may a map to numbers, {'yes': 5, 'no': 1}
  std::vector<std::string> aliases;  // n_estimators for train.num_boost_round
  // Accepted so that SQLFlow's statements run, but without effect; the user is told.
  bool without_effect = false;
  std::string doc;  // one line
};

enum class ModelFamily { kLinear, kDeep, kWideDeep, kTrees };
enum class ModelTask { kClassification, kRegression, kRanking, kByObjective };

struct ModelType {
  std::string name;                  // "DNNClassifier", "xgboost.gbtree"
  std::vector<std::string> aliases;  // "sqlflow_models.DNNClassifier", "XGBClassifier"
  ModelFamily family = ModelFamily::kLinear;
  ModelTask task = ModelTask::kClassification;
  std::string doc;
  std::vector<AttributeSpec>
      attributes;                    // its own and the common ones (train.*, engine.*, split.*)
  std::string default_optimizer;     // of the deep part; wide parts use Ftrl
  double default_learning_rate = 0;  // of that optimizer; 0: its own
  std::string default_objective;     // trees
  std::vector<std::string> towers;   // targets of COLUMN ... FOR, each with features of its own
  // Of a network whose graph is written where the statement is planned, and stored with the model.
  // Empty for trees, and for linear, DNN and wide and deep types (models/families/family_layers.h).
  GraphBuilder build;
};

const std::vector<ModelType>& ModelTypes();
// A user-defined type: a network with an imported graph, and attributes of its
// own beside those of every network.
ModelType UserType(std::string name, std::string doc, bool classification,
                   std::vector<AttributeSpec> own);
// Whether a model.loss is one of classes; nullopt: there is no such loss.
std::optional<bool> IsLossOfClasses(std::string_view loss);
// Of types that come in this language ("onnx", "keras"): model.frozen of an ONNX file's.
std::vector<AttributeSpec> AttributesOfLanguage(std::string_view language);
// By name or alias, in any case; nullptr if unknown.
const ModelType* FindModelType(std::string_view name);
// Whether the type is one of boosted trees.
bool IsTrees(const ModelSpec& spec);
const AttributeSpec* FindAttribute(const ModelType& type, std::string_view name);
// Attributes of statements other than train ("predict", "evaluate", "explain"): predict.*,
// evaluate's validation.metrics, explain's summary.*, and result.* of all; and of trainings that
// try several models ("auto", "tune"); empty for any other kind.
const std::vector<AttributeSpec>& StatementAttributes(std::string_view statement_kind);

// The hint for an attribute that `type` lacks: the same name with the right prefix ("hidden_units"
// -> "did you mean 'model.hidden_units'?"), the equivalent elsewhere ("booster"), or the nearest
// name; "" if there is none.
std::string UnknownAttributeHint(const ModelType& type, std::string_view name);

// The spelling in `spec.allowed` that `text` means ("adam" -> "Adam", "NDCG@10" -> "ndcg@10");
// `text` itself if the set is open; nullopt if it is not in a closed set.
std::optional<std::string> CanonicalChoice(const AttributeSpec& spec, std::string_view text);

}  // namespace sluice::models
