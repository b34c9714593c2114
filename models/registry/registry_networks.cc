#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/letter_case.h"
#include "models/networks/optimizer.h"
#include "models/registry/registry_internal.h"

namespace sluice::models {
namespace {

// A wider layer is a typing error: its weights would not fit any worker here.
constexpr double kWidestLayer = 65'536;
constexpr double kMaxNetworkClasses = 100'000;
constexpr double kNearestQuantile = 1e-4;  // to 0 and 1: more than any table can tell

std::vector<std::string> OptimizerNames() {
  std::vector<std::string> names;
  for (const OptimizerDescription& optimizer : Optimizers()) {
    names.push_back(optimizer.name);
  }
  return names;
}

AttributeSpec OptimizerName(const std::string& name, const std::string& part,
                            const std::string& chosen) {
  return Text(name, {}, OptimizerNames(),
              fmt::format("optimizer of the {}; {} when not given", part, chosen));
}

// "learning rate (Adam 0.001, SGD 0.01)": an argument's defaults, for the help text.
std::string DefaultsOf(const std::string& argument) {
  std::string text;
  for (const OptimizerDescription& optimizer : Optimizers()) {
    for (const OptimizerArgument& own : optimizer.arguments) {
      if (own.name == argument) {
        text += text.empty() ? "" : ", ";
        text += own.is_flag ? fmt::format("{} {}", optimizer.name, own.default_value != 0)
                            : fmt::format("{} {}", optimizer.name, own.default_value);
      }
    }
  }
  return text;
}

// Every argument of any optimizer, once; whether the chosen optimizer takes it is checked when the
// name is known.
void AppendOptimizerArguments(const std::string& prefix, std::vector<AttributeSpec>* attributes) {
  std::map<std::string, size_t> position;
  for (const OptimizerDescription& optimizer : Optimizers()) {
    for (const OptimizerArgument& argument : optimizer.arguments) {
      const auto [found, fresh] = position.emplace(argument.name, attributes->size());
      if (fresh) {
        const std::string doc = fmt::format("{} ({})", argument.doc, DefaultsOf(argument.name));
        const std::string name = prefix + "." + argument.name;
        attributes->push_back(argument.is_flag ? Flag(name, {}, doc) : Number(name, {}, {}, doc));
      }
      AttributeSpec& spec = (*attributes)[found->second];
      if (!argument.is_flag && argument.max > argument.min) {
        spec.min = fresh ? argument.min : std::min(spec.min.value_or(argument.min), argument.min);
        spec.max = fresh ? argument.max : std::max(spec.max.value_or(argument.max), argument.max);
      }
    }
  }
}

void AppendTraining(std::vector<AttributeSpec>* attributes) {
  attributes->push_back(Integer("train.batch_size", {}, Between(1, 1'000'000),
                                "rows of one gradient step; chosen by the table's size"));
  attributes->push_back(Integer("train.epoch", {}, Between(1, 100'000),
                                "passes over the rows; when not given, until the validation "
                                "metric gets no better (linear models: to the least loss)"));
  attributes->push_back(Integer("train.max_steps", int64_t{0}, AtLeast(0),
                                "stop after this many steps; 0: no limit"));
  attributes->push_back(Flag("train.shuffle", true, "shuffle shards, and rows inside them"));
  attributes->push_back(
      Integer("train.early_stopping_rounds", {}, AtLeast(0),
              "stop after this many epochs without a better validation metric; 0: off; 9 where "
              "train.epoch is not given and there are validation rows"));
  attributes->push_back(Text(
      "train.early_stopping_metric", {}, {},
      "metric of the validation rows that decides when a training stops and which weights are "
      "kept; "
      "when not given, log_loss of classes, rmse of numbers, the loss itself of a model type that "
      "has loss()"));
  attributes->push_back(
      Integer("train.save_checkpoints_steps", int64_t{100}, AtLeast(1),
              "with engine.checkpoint_dir: steps between two checkpoints; more where writing one "
              "takes longer"));
  attributes->push_back(WithoutEffect(
      Integer("train.log_every_n_iter", int64_t{10}, AtLeast(1),
              "taken over from SQLFlow, no effect: progress is reported once a second")));
  for (AttributeSpec& spec : TrainingAttributes()) {
    attributes->push_back(std::move(spec));
  }
}

std::vector<std::string> LossNames(bool classification) {
  if (classification) {
    return {"logistic",
            "softmax",
            "BinaryCrossentropy",
            "CategoricalCrossentropy",
            "SparseCategoricalCrossentropy",
            "Hinge",
            "SquaredHinge"};
  }
  return {"squared", "MeanSquaredError", "MeanAbsoluteError", "Huber", "LogCosh", "Poisson",
          "Gamma",   "Tweedie",          "quantile"};
}

void AppendTask(bool classification, std::vector<AttributeSpec>* attributes) {
  if (classification) {
    attributes->push_back(Integer("model.n_classes", {}, Between(2, kMaxNetworkClasses),
                                  "number of classes; counted in the data when not given"));
    attributes->push_back(
        List(AttributeType::kTextList, "model.label_vocabulary", {}, {},
             "the classes, in the order of their ids; found in the data when not given"));
  } else {
    attributes->push_back(Integer("model.label_dimension", int64_t{1}, Between(1, kWidestLayer),
                                  "numbers per label; more than one for a CSV label"));
  }
  attributes->push_back(
      Text("model.loss", {}, LossNames(classification), "what is minimised; chosen by the label"));
  attributes->push_back(Number("loss.delta", 1.0, Between(1e-6, 1e12),
                               "Huber: where squared turns into absolute error"));
  if (!classification) {
    attributes->push_back(Number("loss.variance_power", {}, Between(1.001, 1.999),
                                 "Tweedie: between Poisson (1) and Gamma (2); 1.5 when not given"));
  }
  if (!classification) {
    attributes->push_back(List(AttributeType::kNumberList, "model.quantiles", {},
                               Between(kNearestQuantile, 1 - kNearestQuantile),
                               "quantile: the shares of rows below each number predicted, as in "
                               "[0.1, 0.5, 0.9]"));
  }
  attributes->push_back(Text("model.loss_reduction", std::string("sum_over_batch_size"),
                             {"sum_over_batch_size"}, "how a batch's losses become one: the mean"));
  if (!classification) {
    attributes->push_back(
        WithAliases(Text("model.exposure_column", {}, {},
                         "Poisson, Gamma, Tweedie: the column that says how long or for how much "
                         "each label was counted; what is learnt is the rate"),
                    {"exposure_column", "model.exposure", "exposure"}));
  }
  attributes->push_back(
      WithAliases(Text("model.weight_column", {}, {}, "the column that holds each row's weight"),
                  {"weight_column"}));
}

AttributeSpec SparseCombiner(const std::string& name) {
  return Text(name, std::string("sum"), {"sum", "mean", "sqrtn"},
              "how the weights of several ids of one row become one");
}

ModelType Linear(bool classification) {
  ModelType type;
  type.name = classification ? "LinearClassifier" : "LinearRegressor";
  type.family = ModelFamily::kLinear;
  type.task = classification ? ModelTask::kClassification : ModelTask::kRegression;
  type.doc = classification ? "logistic regression: one weight per feature, two or more classes"
                            : "linear regression: one weight per feature";
  type.default_optimizer = "Ftrl";
  AppendTask(classification, &type.attributes);
  type.attributes.push_back(SparseCombiner("model.sparse_combiner"));
  type.attributes.push_back(Number(
      "model.ridge", {}, Between(0, 1e9),
      "penalty on half the squared weights beside the sum of the rows' losses, where the "
      "model is trained to its optimum: when not given, 1, but 0.01 for a regressor's numeric "
      "features"));
  type.attributes.push_back(OptimizerName("model.optimizer", "model", type.default_optimizer));
  AppendOptimizerArguments("optimizer", &type.attributes);
  AppendTraining(&type.attributes);
  return type;
}

ModelType Deep(bool classification) {
  ModelType type;
  type.name = classification ? "DNNClassifier" : "DNNRegressor";
  type.family = ModelFamily::kDeep;
  type.task = classification ? ModelTask::kClassification : ModelTask::kRegression;
  type.doc = classification ? "neural network with hidden layers, two or more classes"
                            : "neural network with hidden layers for a number";
  type.default_optimizer = "Adam";
  type.attributes.push_back(HiddenUnits("model.hidden_units"));
  AppendHidden("", &type.attributes);
  AppendNetworkAttributes(classification, type.default_optimizer, &type.attributes);
  return type;
}

// The model zoo's network: like DNN*, but its hidden layers have a default.
ModelType ZooDeep(bool classification) {
  ModelType type = Deep(classification);
  type.name = "sqlflow_models." + type.name;
  type.doc += " (hidden layers 100, 100 when not given)";
  type.attributes.front().default_value = std::vector<double>{100, 100};
  return type;
}

ModelType WideAndDeep(bool classification) {
  ModelType type;
  type.name = classification ? "DNNLinearCombinedClassifier" : "DNNLinearCombinedRegressor";
  type.family = ModelFamily::kWideDeep;
  type.task = classification ? ModelTask::kClassification : ModelTask::kRegression;
  type.doc = classification ? "wide and deep: a linear model and a network, two or more classes"
                            : "wide and deep: a linear model and a network for a number";
  type.default_optimizer = "Adam";
  type.attributes.push_back(
      WithAliases(HiddenUnits("model.dnn_hidden_units"), {"model.hidden_units"}));
  AppendHidden("dnn_", &type.attributes);
  AppendTask(classification, &type.attributes);
  type.attributes.push_back(SparseCombiner("model.linear_sparse_combiner"));
  type.attributes.push_back(
      OptimizerName("model.dnn_optimizer", "deep part", type.default_optimizer));
  type.attributes.push_back(OptimizerName("model.linear_optimizer", "wide part", "Ftrl"));
  AppendOptimizerArguments("dnn_optimizer", &type.attributes);
  AppendOptimizerArguments("linear_optimizer", &type.attributes);
  AppendTraining(&type.attributes);
  return type;
}

}  // namespace

void AppendHidden(const std::string& prefix, std::vector<AttributeSpec>* attributes) {
  attributes->push_back(Text("model." + prefix + "activation_fn", std::string("relu"),
                             {"relu", "tanh", "sigmoid", "elu", "leaky_relu", "selu", "gelu"},
                             "what follows each hidden layer"));
  attributes->push_back(Number("model." + prefix + "dropout", {}, Between(0, 0.99),
                               "share of a hidden layer's outputs left out of a step; none when "
                               "not given"));
  attributes->push_back(
      Flag("model.batch_norm", false,
           "normalise each hidden layer over the batch, or over a lane's part of it where "
           "engine.micro_batches cuts steps"));
}

// The default is wide enough for tables of some dozen columns (letters of 16 numbers: 0.945 of 26
// classes right, 0.915 with [64, 32]), and a million rows a second still.
AttributeSpec HiddenUnits(const std::string& name) {
  return List(AttributeType::kIntegerList, name, std::vector<double>{128, 64},
              Between(1, kWidestLayer), "width of each hidden layer, first to last: [64, 32]");
}

void AppendNetworkAttributes(bool classification, const std::string& optimizer,
                             std::vector<AttributeSpec>* attributes) {
  AppendTask(classification, attributes);
  attributes->push_back(OptimizerName("model.optimizer", "model", optimizer));
  AppendOptimizerArguments("optimizer", attributes);
  AppendTraining(attributes);
}

ModelType UserType(std::string name, std::string doc, bool classification,
                   std::vector<AttributeSpec> own) {
  ModelType type;
  type.name = std::move(name);
  type.doc = std::move(doc);
  type.family = ModelFamily::kDeep;
  type.task = classification ? ModelTask::kClassification : ModelTask::kRegression;
  type.default_optimizer = "Adam";
  type.attributes = std::move(own);
  AppendNetworkAttributes(classification, type.default_optimizer, &type.attributes);
  return type;
}

std::optional<bool> IsLossOfClasses(std::string_view loss) {
  for (const bool classes : {true, false}) {
    for (const std::string& name : LossNames(classes)) {
      if (SameIgnoringCase(name, loss)) {
        return classes;
      }
    }
  }
  return std::nullopt;
}

std::vector<AttributeSpec> AttributesOfLanguage(std::string_view language) {
  if (language != "onnx") {
    return {};
  }
  return {List(AttributeType::kTextList, "model.frozen", {}, {},
               "parameters of the file that do not learn, by their names")};
}

std::vector<ModelType> NetworkTypes() {
  return {Linear(true),  Linear(false),  Deep(true),        Deep(false),
          ZooDeep(true), ZooDeep(false), WideAndDeep(true), WideAndDeep(false)};
}

}  // namespace sluice::models
