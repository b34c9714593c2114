#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/letter_case.h"
#include "base/value.h"
#include "models/features/cell_format.h"
#include "models/model.pb.h"
#include "models/trees/gradient_boosting_internal.h"

namespace sluice::models {
namespace {

// OpenMP aborts the process if it cannot start that many.
constexpr int kMaxThreads = 256;

Result<std::string> SettingText(const Attribute& attribute) {
  switch (attribute.value_case()) {
    case Attribute::kFlag:
      return std::string(attribute.flag() ? "1" : "0");
    case Attribute::kInteger:
      return std::to_string(attribute.integer());
    case Attribute::kNumber:
      return FormatDouble(attribute.number());
    case Attribute::kText:
      return attribute.text();
    default:
      return InvalidArgument(
          fmt::format("attribute {} must be one number or text, not a list", attribute.name()));
  }
}

double NumberOf(const Attribute& attribute) {
  return attribute.value_case() == Attribute::kInteger ? static_cast<double>(attribute.integer())
                                                       : attribute.number();
}

// The model's type determines booster and forest; SQLFlow's xgboost. prefix is optional.
struct Type {
  std::string name;  // lower case, no prefix
  bool forest = false;
  bool classifier = false;
  bool regressor = false;
};

Result<Type> TypeOf(const std::string& spelled) {
  Type type;
  type.name = LowerAscii(spelled);
  constexpr std::string_view kPrefix = "xgboost.";
  if (type.name.starts_with(kPrefix)) {
    type.name = type.name.substr(kPrefix.size());
  }
  static const std::vector<std::string> kNames = {"gbtree",
                                                  "dart",
                                                  "gblinear",
                                                  "xgbclassifier",
                                                  "xgbregressor",
                                                  "xgbrfclassifier",
                                                  "xgbrfregressor",
                                                  "xgbranker",
                                                  "boostedtreesclassifier",
                                                  "boostedtreesregressor"};
  if (std::find(kNames.begin(), kNames.end(), type.name) == kNames.end()) {
    return NotFound(fmt::format("no boosted model of type '{}'", spelled))
        .Hint(
            "xgboost.gbtree, xgboost.dart, xgboost.gblinear, XGBClassifier, XGBRegressor, "
            "XGBRFClassifier, XGBRFRegressor, XGBRanker");
  }
  type.forest = type.name.starts_with("xgbrf");
  type.classifier = type.name.ends_with("classifier");
  type.regressor = type.name.ends_with("regressor");
  return type;
}

std::string DefaultObjective(const Type& type, const LabelPlan& label) {
  if (type.name == "xgbranker") {
    return "rank:pairwise";
  }
  if (label.kind() != LabelPlan::CLASS) {
    return "reg:squarederror";
  }
  return label.classes_size() > 2 ? "multi:softprob" : "binary:logistic";
}

Status CheckObjective(const Type& type, const LabelPlan& label, BoostingParameters* parameters) {
  const std::string& objective = parameters->objective;
  const bool classes = label.kind() == LabelPlan::CLASS;
  const bool binary = objective.starts_with("binary:");
  const bool multi = objective.starts_with("multi:");
  if (type.classifier && !binary && !multi) {
    return InvalidArgument(fmt::format("objective {} is not one of a classifier", objective))
        .Hint("binary:logistic or multi:softprob");
  }
  if (type.regressor && (binary || multi)) {
    return InvalidArgument(fmt::format("objective {} is not one of a regressor", objective))
        .Hint("reg:squarederror");
  }
  if ((binary || multi) && !classes) {
    return InvalidArgument(fmt::format("objective {} needs classes, but label '{}' holds numbers",
                                       objective, label.column()))
        .Hint("reg:squarederror learns numbers");
  }
  if (classes && label.classes_size() < 2) {
    return InvalidArgument(fmt::format("label '{}' has {} class{}: a classifier needs two or more",
                                       label.column(), label.classes_size(),
                                       label.classes_size() == 1 ? "" : "es"))
        .Hint("look at the label's values, or at the select's WHERE");
  }
  if (binary && label.classes_size() > 2) {
    return InvalidArgument(fmt::format("objective {} is for two classes, but label '{}' has {}",
                                       objective, label.column(), label.classes_size()))
        .Hint("multi:softprob learns several");
  }
  return OkStatus();
}

// Attributes that are ours, or follow from the rest of the spec, and are not passed to libxgboost.
bool IsOurs(const std::string& name) {
  static const std::vector<std::string> kOurs = {
      "objective", "num_class",    "importance_type", "silent",  "verbosity",  "weight_column",
      "missing",   "group_column", "booster",         "nthread", "n_jobs",     "n_estimators",
      "seed",      "random_state", "num_boost_round", "max_bin", "eval_metric"};
  return name.find('.') != std::string::npos ||
         std::find(kOurs.begin(), kOurs.end(), name) != kOurs.end();
}

// There may be several metrics: "auc, logloss".
void AddMetrics(std::string_view names, BoostingParameters* parameters) {
  size_t begin = 0;
  while (begin < names.size()) {
    size_t end = names.find_first_of(", ", begin);
    end = end == std::string_view::npos ? names.size() : end;
    if (end > begin) {
      parameters->settings.emplace_back("eval_metric", names.substr(begin, end - begin));
    }
    begin = end + 1;
  }
}

// "model.x" is the same attribute as "x".
std::map<std::string, const Attribute*> ByName(const ModelSpec& spec) {
  std::map<std::string, const Attribute*> attributes;
  for (const Attribute& attribute : spec.attributes()) {
    std::string name = attribute.name();
    if (name.starts_with("model.")) {
      name = name.substr(6);
    }
    attributes[name] = &attribute;
  }
  return attributes;
}

class ParameterReader {
 public:
  ParameterReader(const ModelSpec& spec, BoostingParameters* out)
      : attributes_(ByName(spec)), out_(out) {}

  const Attribute* Find(std::initializer_list<const char*> names) const {
    for (const char* name : names) {
      const auto found = attributes_.find(name);
      if (found != attributes_.end() && found->second->value_case() != Attribute::VALUE_NOT_SET) {
        return found->second;
      }
    }
    return nullptr;
  }
  int Whole(std::initializer_list<const char*> names, int otherwise) const {
    const Attribute* attribute = Find(names);
    if (attribute == nullptr) {
      return otherwise;
    }
    constexpr double kMax = std::numeric_limits<int>::max();
    const double number = NumberOf(*attribute);
    return std::isnan(number) ? otherwise : static_cast<int>(std::clamp(number, -kMax, kMax));
  }
  void Set(std::string name, std::string value) const {
    out_->settings.emplace_back(std::move(name), std::move(value));
  }
  // Sets what libxgboost's sklearn wrapper sets for a forest, unless the user has given it.
  void SetUnlessGiven(std::initializer_list<const char*> names, const char* value) const {
    if (Find(names) == nullptr) {
      Set(*names.begin(), value);
    }
  }
  Status PassOn() const {
    for (const auto& [name, attribute] : attributes_) {
      if (!IsOurs(name) && attribute->value_case() != Attribute::VALUE_NOT_SET) {
        ASSIGN_OR_RETURN(const std::string value, SettingText(*attribute));
        Set(name, value);
      }
    }
    return OkStatus();
  }

 private:
  std::map<std::string, const Attribute*> attributes_;
  BoostingParameters* out_;
};

void SetForest(const ParameterReader& reader, BoostingParameters* parameters) {
  // A forest is one round of many trees, each on its own sample of rows and columns.
  if (reader.Find({"num_parallel_tree"}) == nullptr) {
    reader.Set("num_parallel_tree", std::to_string(parameters->rounds));
  }
  parameters->rounds = 1;
  reader.SetUnlessGiven({"eta", "learning_rate"}, "1");
  reader.SetUnlessGiven({"subsample"}, "0.8");
  reader.SetUnlessGiven({"colsample_bynode"}, "0.8");
  reader.SetUnlessGiven({"lambda", "reg_lambda"}, "1e-5");
}

void SetBooster(const Type& type, const ParameterReader& reader, BoostingParameters* parameters) {
  using Booster = BoostingParameters::Booster;
  if (type.name == "gblinear") {
    parameters->booster = Booster::kLinear;
    parameters->raw_values = true;
    reader.Set("booster", "gblinear");
    // shotgun, libxgboost's default, has data races: the same seed would give different models.
    reader.SetUnlessGiven({"updater"}, "coord_descent");
    return;
  }
  parameters->booster = type.name == "dart" ? Booster::kDart : Booster::kTree;
  reader.Set("booster", type.name == "dart" ? "dart" : "gbtree");
  const Attribute* method = reader.Find({"tree_method"});
  const std::string named = method == nullptr ? "" : method->text();
  if (named.empty() || named == "auto") {
    reader.Set("tree_method", "hist");
  }
  parameters->raw_values = named == "exact" || named == "approx";
  reader.Set("max_bin", std::to_string(parameters->max_bin));
}

void SetOutputs(const LabelPlan& label, BoostingParameters* parameters) {
  parameters->classes =
      label.kind() == LabelPlan::CLASS ? static_cast<size_t>(label.classes_size()) : 0;
  if (parameters->objective == "multi:softmax") {
    parameters->objective = "multi:softprob";  // the same trees, and probabilities
  }
  if (parameters->objective.starts_with("multi:")) {
    parameters->raw_outputs = parameters->classes;
    parameters->outputs = parameters->classes == 2 ? 1 : parameters->classes;
    parameters->settings.emplace_back("num_class", std::to_string(parameters->classes));
  }
}

// Brings what the user says in the label's unit, or its square, to the scale that is learnt.
// `settings` are as for libxgboost.
void ScaleSettings(const LabelScale& label, BoostingParameters* parameters) {
  parameters->begins_with_mean = true;
  for (auto& [name, value] : parameters->settings) {
    const double number = ParseNumber(value).value_or(0);
    if (name == "base_score") {
      parameters->begins_with_mean = false;
      value = FormatDouble(label.Transformed(number));
    } else if (name == "gamma" || name == "min_split_loss") {
      value = FormatDouble(number / label.scale / label.scale);
    } else if (name == "alpha" || name == "reg_alpha" || name == "max_delta_step") {
      value = FormatDouble(number / label.scale);
    }
  }
}

// Distances are learnt from the mean of the label's plan, beside which libxgboost's 32 bits may not
// tell labels apart. Squares are learnt on its scale, too: libxgboost makes no split that gains
// less than 1e-6, begins with 0.5, and overflows with the squares of large numbers. A curve
// compresses distances, which makes no sense for objectives on counts and rates, or their
// logarithms.
Status SetLabelScale(const LabelPlan& label, BoostingParameters* parameters) {
  if (label.kind() != LabelPlan::NUMBER) {
    return OkStatus();
  }
  ASSIGN_OR_RETURN(const auto scales, LabelScales(label));
  const LabelScale& scale = scales.front();
  parameters->label_scale = scale;
  const std::string& objective = parameters->objective;
  const bool curved = scale.curve != LabelCurve::kStraight;
  const bool distances = LearnsDistances(objective);
  if (curved && !distances) {
    return InvalidArgument(fmt::format("label '{}' is learnt on a curve, and objective {} has no "
                                       "use for one",
                                       label.column(), objective))
        .Hint("leave train.label_scale out, or the objective");
  }
  const bool scaled = scale.mean != 0 || scale.scale != 1;
  parameters->learns_scaled = curved || (distances && scaled);
  if (distances && scaled) {
    ScaleSettings(scale, parameters);
  }
  if (objective == "reg:absoluteerror") {  // libxgboost finds the median
    parameters->begins_with_mean = false;
  }
  return OkStatus();
}

}  // namespace

Result<BoostingParameters> ParametersOf(const ModelSpec& spec) {
  const LabelPlan& label = spec.features().label();
  ASSIGN_OR_RETURN(const Type type, TypeOf(spec.type()));
  if (label.kind() == LabelPlan::NONE) {
    return InvalidArgument(fmt::format("{} needs a label", spec.type())).Hint("say LABEL column");
  }
  if (label.kind() == LabelPlan::VECTOR) {
    return InvalidArgument(fmt::format("{} learns one number or class per row, label '{}' holds "
                                       "several",
                                       spec.type(), label.column()))
        .Hint("train one model per number, or a DNNRegressor");
  }
  BoostingParameters parameters;
  const ParameterReader reader(spec, &parameters);
  parameters.label = label.column();
  parameters.group_column = spec.features().group_column();
  const Attribute* objective = reader.Find({"objective"});
  parameters.objective = objective == nullptr ? DefaultObjective(type, label) : objective->text();
  RETURN_IF_ERROR(CheckObjective(type, label, &parameters));
  parameters.ranking = parameters.objective.starts_with("rank:");
  constexpr int kDefaultRounds = 10;  // as xgb.train
  parameters.rounds =
      reader.Whole({"train.num_boost_round", "num_boost_round", "n_estimators"}, kDefaultRounds);
  parameters.early_stopping_rounds = reader.Whole({"train.early_stopping_rounds"}, 0);
  parameters.threads = std::min(reader.Whole({"nthread", "n_jobs"}, 0), kMaxThreads);
  parameters.training_threads =
      std::min(reader.Whole({"nthread", "n_jobs", "train.nthread"}, 0), kMaxThreads);
  parameters.max_bin = reader.Whole({"max_bin"}, 256);
  const Attribute* missing = reader.Find({"missing"});
  if (missing != nullptr && std::isfinite(NumberOf(*missing))) {
    parameters.missing = NumberOf(*missing);
  }
  RETURN_IF_ERROR(reader.PassOn());
  SetBooster(type, reader, &parameters);
  if (type.forest) {
    SetForest(reader, &parameters);
  }
  SetOutputs(label, &parameters);
  RETURN_IF_ERROR(SetLabelScale(label, &parameters));
  reader.Set("objective", parameters.objective);
  const Attribute* seed = reader.Find({"seed", "random_state"});
  // libxgboost keeps its seed in 31 bits.
  const uint64_t chosen = seed == nullptr ? spec.seed() : static_cast<uint64_t>(seed->integer());
  reader.Set("seed", std::to_string(chosen & 0x7fffffffu));
  reader.Set("verbosity", "0");
  if (parameters.training_threads > 0) {
    reader.Set("nthread", std::to_string(parameters.training_threads));
  }
  if (const Attribute* metric = reader.Find({"eval_metric"})) {
    AddMetrics(metric->text(), &parameters);
  }
  return parameters;
}

double GradientBoosting::MostNodes(const ModelSpec& spec, double rows) {
  const Result<BoostingParameters> parameters = ParametersOf(spec);
  if (!parameters.ok() || parameters->booster == BoostingParameters::Booster::kLinear) {
    return 0;
  }
  const auto setting = [&](std::string_view name, double unless_given) {
    for (const auto& [known, value] : parameters->settings) {
      unless_given = known == name ? std::strtod(value.c_str(), nullptr) : unless_given;
    }
    return unless_given;
  };
  constexpr double kDefaultDepth = 6, kDeepest = 1'000;
  const double depth = setting("max_depth", kDefaultDepth);
  const double most_leaves = setting("max_leaves", 0);
  double leaves = std::max(rows, 1.0);
  leaves = depth > 0 ? std::min(leaves, std::exp2(std::min(depth, kDeepest))) : leaves;
  leaves = most_leaves > 0 ? std::min(leaves, most_leaves) : leaves;
  return (2 * leaves - 1) * std::max(1.0, setting("num_parallel_tree", 1)) *
         static_cast<double>(parameters->raw_outputs) * std::max(1, parameters->rounds);
}

}  // namespace sluice::models
