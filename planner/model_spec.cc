#include <fmt/core.h>
#include <fmt/ranges.h>
#include <google/protobuf/util/message_differencer.h>

#include <algorithm>

#include "models/networks/optimizer.h"
#include "planner/error_list.h"
#include "planner/model_spec_internal.h"

namespace sluice::planner {
namespace {

using models::ModelFamily;

// Default learning rates, measured on the census: Adam 0.001 for hidden layers; FTRL 0.2 reaches a
// logistic regression's AUC in two epochs (0.05 needs ten), and 0.05 next to a network, which has
// to learn, too.
constexpr double kLinearRate = 0.2;
constexpr double kWideRate = 0.05;

// Standardised inputs of hidden layers are bounded by this, however far out they are: one diamond
// whose size is mismeasured by 40 standard deviations caused 28 % of all errors.
constexpr double kInputBound = 3;

// Defaults for trees: the best AUC within seconds.
constexpr int64_t kChosenRounds = 100;
constexpr double kChosenEta = 0.1;
constexpr int64_t kChosenPatience = 10;
constexpr double kChosenStepOfCounts =
    0.7;  // XGBoost's own where none is given: without, predictions explode
// With fewer cells, threads spend more time waiting for each other than working.
constexpr double kOneThreadCells = 200'000;

struct OptimizerChoice {
  std::string name_attribute;  // "model.dnn_optimizer"
  std::string prefix;          // "dnn_optimizer"
  std::string default_name;
  double default_rate = 0;  // 0: the optimizer's own
};

Status FillOptimizer(const AttributeSet& attributes, const OptimizerChoice& choice,
                     models::OptimizerSpec* spec) {
  const std::optional<std::string> given = attributes.Text(choice.name_attribute);
  const std::string name = given.value_or(choice.default_name);
  const auto& all = models::Optimizers();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const auto& optimizer) { return optimizer.name == name; });
  SLUICE_CHECK(found != all.end(), "the registry allows an optimizer that does not exist: " + name);
  spec->set_name(name);
  std::vector<std::string> own;
  for (const models::OptimizerArgument& argument : found->arguments) {
    own.push_back(argument.name);
    const std::string attribute = choice.prefix + "." + argument.name;
    if (argument.is_flag) {
      SetAttribute(argument.name, attributes.Flag(attribute).value_or(argument.default_value != 0),
                   spec->mutable_arguments());
      continue;
    }
    double value = argument.default_value;
    if (argument.name == "learning_rate" && !given && choice.default_rate > 0) {
      value = choice.default_rate;
    }
    value = attributes.Number(attribute).value_or(value);
    if (argument.max > argument.min && (value < argument.min || value > argument.max)) {
      return InvalidArgument(fmt::format("attribute {} of {} must be from {} to {}, not {}",
                                         attribute, name, argument.min, argument.max, value))
          .At(attributes.SpanOf(attribute));
    }
    SetAttribute(argument.name, value, spec->mutable_arguments());
  }
  Status errors;
  for (const auto& [attribute, entry] : attributes.entries()) {
    const bool mine = attribute.starts_with(choice.prefix + ".");
    const std::string argument = mine ? attribute.substr(choice.prefix.size() + 1) : "";
    if (mine && entry.given && std::find(own.begin(), own.end(), argument) == own.end()) {
      errors.Add(InvalidArgument(fmt::format("optimizer {} has no argument {}", name, argument))
                     .At(entry.value_span)
                     .Hint(fmt::format("it has {}", fmt::join(own, ", "))));
    }
  }
  return errors;
}

Status FillOptimizers(const BoundTrain& bound, models::ModelSpec* spec) {
  switch (bound.type->family) {
    case ModelFamily::kLinear:
      RETURN_IF_ERROR(FillOptimizer(bound.attributes,
                                    {"model.optimizer", "optimizer", "Ftrl", kLinearRate},
                                    spec->mutable_wide_optimizer()));
      *spec->mutable_deep_optimizer() = spec->wide_optimizer();
      return OkStatus();
    case ModelFamily::kDeep:
      RETURN_IF_ERROR(FillOptimizer(bound.attributes,
                                    {"model.optimizer", "optimizer", bound.type->default_optimizer,
                                     bound.type->default_learning_rate},
                                    spec->mutable_deep_optimizer()));
      *spec->mutable_wide_optimizer() = spec->deep_optimizer();
      return OkStatus();
    case ModelFamily::kWideDeep: {
      Status errors =
          FillOptimizer(bound.attributes,
                        {"model.dnn_optimizer", "dnn_optimizer", bound.type->default_optimizer, 0},
                        spec->mutable_deep_optimizer());
      errors.Add(FillOptimizer(bound.attributes,
                               {"model.linear_optimizer", "linear_optimizer", "Ftrl", kWideRate},
                               spec->mutable_wide_optimizer()));
      return errors;
    }
    case ModelFamily::kTrees:
      break;
  }
  return OkStatus();
}

// The data has more classes than the statement says.
Status CheckClassCount(const BoundTrain& bound, std::string_view attribute) {
  const std::optional<int64_t> announced = bound.attributes.Integer(attribute);
  const models::LabelPlan& label = bound.features.label();
  if (!announced || label.kind() != models::LabelPlan::CLASS ||
      *announced >= label.classes_size()) {
    return OkStatus();
  }
  return InvalidArgument(fmt::format("label '{}' has {} classes, more than {}={}", label.column(),
                                     label.classes_size(), attribute, *announced))
      .At(bound.attributes.SpanOf(attribute))
      .Hint(fmt::format("write {}={}, or leave it out: the classes are counted", attribute,
                        label.classes_size()));
}

bool IsOfModel(std::string_view name) {
  return name.starts_with("model.") || name.starts_with("loss.");
}

// Continuing a network's training keeps its structure.
Status CheckSameStructure(const BoundTrain& bound, const models::ModelSpec& base) {
  Status errors;
  for (const auto& [name, entry] : bound.attributes.entries()) {
    if (!entry.given || !IsOfModel(name) || name.ends_with("optimizer") ||
        name == "model.weight_column") {
      continue;
    }
    models::ModelSpec scratch;
    SetAttribute(name, *entry.value, scratch.mutable_attributes());
    const models::Attribute* learnt = FindIn(base.attributes(), name);
    if (learnt == nullptr ||
        !google::protobuf::util::MessageDifferencer::Equals(*learnt, scratch.attributes(0))) {
      errors.Add(
          InvalidArgument(fmt::format("attribute {} differs from the model to continue from", name))
              .At(entry.value_span)
              .Hint("leave it out, or train a new model without USING"));
    }
  }
  return errors;
}

std::string LossOf(const BoundTrain& bound) {
  if (const auto loss = bound.attributes.Text("model.loss")) {
    return *loss;
  }
  const models::LabelPlan& label = bound.features.label();
  if (label.kind() != models::LabelPlan::CLASS) {
    return "squared";
  }
  return label.classes_size() <= 2 ? "logistic" : "softmax";
}

// The number of values in a label is known from the data.
Status CheckLabelDimension(const BoundTrain& bound) {
  constexpr char kName[] = "model.label_dimension";
  const models::LabelPlan& label = bound.features.label();
  const int64_t width = label.kind() == models::LabelPlan::VECTOR ? label.width() : 1;
  if (!bound.attributes.Given(kName) || bound.attributes.Integer(kName) == width) {
    return OkStatus();
  }
  return InvalidArgument(fmt::format("label '{}' holds {} number{}, not {}={}", label.column(),
                                     width, width == 1 ? "" : "s", kName,
                                     bound.attributes.Integer(kName).value_or(1)))
      .At(bound.attributes.SpanOf(kName))
      .Hint(fmt::format("write {}={}, or leave it out: the numbers are counted", kName, width));
}

// Attributes that XGBoost itself ignores.
bool IsOfTrees(std::string_view name) {
  if (name == "train.num_boost_round" || name == "train.early_stopping_rounds") {
    return true;
  }
  return name.find('.') == std::string_view::npos && name != "weight_column" &&
         name != "group_column" && name != "class_weight";
}

Status CheckObjective(const BoundTrain& bound, const std::string& objective) {
  const models::LabelPlan& label = bound.features.label();
  const int classes = label.classes_size();
  const Span span = bound.attributes.SpanOf("objective");
  if (objective.starts_with("binary:") && classes > 2) {
    return InvalidArgument(fmt::format("objective {} is for two classes, and label '{}' has {}",
                                       objective, label.column(), classes))
        .At(span)
        .Hint("write objective='multi:softprob'");
  }
  if (label.kind() == models::LabelPlan::VECTOR) {
    return Unimplemented(fmt::format("label '{}' holds vectors; boosted trees predict one number",
                                     label.column()))
        .Hint("DNNRegressor learns vectors");
  }
  return OkStatus();
}

}  // namespace

const models::Attribute* FindIn(const google::protobuf::RepeatedPtrField<models::Attribute>& list,
                                std::string_view name) {
  for (const models::Attribute& attribute : list) {
    if (attribute.name() == name) {
      return &attribute;
    }
  }
  return nullptr;
}

void SetAttribute(std::string_view name, const TypedValue& value,
                  google::protobuf::RepeatedPtrField<models::Attribute>* attributes) {
  models::Attribute* attribute = nullptr;
  for (models::Attribute& existing : *attributes) {
    if (existing.name() == name) {
      attribute = &existing;
    }
  }
  if (attribute == nullptr) {
    attribute = attributes->Add();
    attribute->set_name(std::string(name));
  }
  struct Setter {
    models::Attribute* attribute;
    void operator()(bool flag) const { attribute->set_flag(flag); }
    void operator()(int64_t integer) const { attribute->set_integer(integer); }
    void operator()(double number) const { attribute->set_number(number); }
    void operator()(const std::string& text) const { attribute->set_text(text); }
    void operator()(const std::vector<double>& numbers) const {
      attribute->mutable_numbers()->mutable_values()->Assign(numbers.begin(), numbers.end());
    }
    void operator()(const std::vector<std::string>& texts) const {
      attribute->mutable_texts()->mutable_values()->Assign(texts.begin(), texts.end());
    }
    void operator()(const std::vector<NamedNumber>& named) const {
      std::string text;
      for (const NamedNumber& one : named) {
        text +=
            fmt::format("{}'{}': {}", text.empty() ? "" : ", ", one.name, FormatDouble(one.number));
      }
      attribute->set_text("{" + text + "}");
    }
  };
  std::visit(Setter{attribute}, value);
}

Status FillNetworkSpec(const BoundTrain& bound, models::ModelSpec* spec) {
  Status errors;
  if (bound.base) {
    *spec->mutable_attributes() = bound.base->plan.model().attributes();
    spec->set_loss(bound.base->plan.model().loss());
    spec->set_input_bound(bound.base->plan.model().input_bound());
    errors.Add(CheckSameStructure(bound, bound.base->plan.model()));
  } else {
    for (const auto& [name, entry] : bound.attributes.entries()) {
      if (IsOfModel(name) && entry.value) {
        SetAttribute(name, *entry.value, spec->mutable_attributes());
      }
    }
    spec->set_loss(LossOf(bound));
    spec->set_input_bound(kInputBound);
  }
  errors.Add(CheckClassCount(bound, "model.n_classes"));
  errors.Add(CheckLabelDimension(bound));
  if (!bound.base) {
    errors.Add(CheckLoss(bound, spec->loss()));
  }
  errors.Add(FillOptimizers(bound, spec));
  return errors;
}

Status FillTreeSpec(const BoundTrain& bound, models::ModelSpec* spec) {
  auto* attributes = spec->mutable_attributes();
  if (bound.base) {
    *attributes = bound.base->plan.model().attributes();
  }
  for (const auto& [name, entry] : bound.attributes.entries()) {
    if (IsOfTrees(name) && entry.value && (entry.given || FindIn(*attributes, name) == nullptr)) {
      SetAttribute(name, *entry.value, attributes);
    }
  }
  const auto choose = [&](const char* name, const TypedValue& value) {
    if (bound.attributes.Declared(name) && !bound.attributes.Given(name)) {
      SetAttribute(name, value, attributes);
    }
  };
  const bool forest = bound.type->name.starts_with("XGBRF");
  if (!bound.base && !forest && !bound.attributes.Given("train.num_boost_round")) {
    choose("train.num_boost_round", kChosenRounds);
    choose("eta", kChosenEta);
    choose("train.early_stopping_rounds", kChosenPatience);
  }
  const auto cells = static_cast<double>(bound.statistics.rows) * bound.features.features_size();
  // The model to continue from may have been trained on fewer rows.
  const bool inherited = FindIn(*attributes, "train.nthread") != nullptr;
  if (cells <= kOneThreadCells || inherited) {
    SetAttribute("train.nthread", int64_t{cells <= kOneThreadCells ? 1 : 0}, attributes);
  }

  const models::LabelPlan& label = bound.features.label();
  const models::Attribute* learnt = FindIn(*attributes, "objective");
  std::string objective = learnt == nullptr ? "" : learnt->text();
  if (objective.empty()) {
    const bool classes = label.kind() == models::LabelPlan::CLASS;
    objective = classes ? (label.classes_size() <= 2 ? "binary:logistic" : "multi:softprob")
                : bound.type->default_objective.empty() ? "reg:squarederror"
                                                        : bound.type->default_objective;
    SetAttribute("objective", objective, attributes);
  }
  if (objective == "count:poisson" && !bound.base) {
    choose("max_delta_step", kChosenStepOfCounts);
  }
  Status errors = CheckObjective(bound, objective);
  errors.Add(CheckClassCount(bound, "num_class"));
  errors.Add(NeedsChoice(bound, "tweedie_variance_power", "objective", objective, {"reg:tweedie"}));
  errors.Add(NeedsChoice(bound, "huber_slope", "objective", objective, {"reg:pseudohubererror"}));
  errors.Add(NeedsChoice(bound, "top_k", "feature_selector",
                         bound.attributes.Text("feature_selector").value_or(""),
                         {"greedy", "thrifty"}));
  const std::string metric = bound.attributes.Text("eval_metric").value_or("");
  if ((metric == "merror" || metric == "mlogloss") && !objective.starts_with("multi:")) {
    errors.Add(InvalidArgument(fmt::format("eval_metric {} is for the objectives multi:softprob "
                                           "and multi:softmax, not {}",
                                           metric, objective))
                   .At(bound.attributes.SpanOf("eval_metric"))
                   .Hint(fmt::format("without the m: '{}'", metric.substr(1))));
  }
  if (objective.starts_with("multi:")) {
    SetAttribute("num_class", int64_t{label.classes_size()}, attributes);
  }
  if (bound.attributes.Declared("seed") && !bound.attributes.Given("seed")) {
    SetAttribute("seed", static_cast<int64_t>(spec->seed()), attributes);
  }
  return errors;
}

}  // namespace sluice::planner
