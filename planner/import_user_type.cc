#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <utility>

#include "catalog/compiled_types.h"
#include "catalog/model_store.h"
#include "models/imports/compiled_model.h"
#include "models/imports/import_network.h"
#include "models/networks/loss.h"
#include "models/networks/optimizer.h"
#include "models/registry/python_type.h"
#include "planner/compile/python_models.h"
#include "planner/model_spec_internal.h"
#include "planner/plan_train_internal.h"

// For a user-defined model type: its source becomes the graph of a plan, for the plan's features.
namespace sluice::planner {
namespace {

using Optimizer = models::CompiledModel::Optimizer;

// A place in the type's source becomes text: the statement has only the type's name.
Status FromSource(const Status& status, const BoundTrain& bound) {
  const Span place = status.diagnostics().front().span;
  if (!place.valid()) {
    return status.MovedTo(bound.type_span);
  }
  const std::string_view source = models::SplitDescribedSource(bound.user_type->text).text;
  const LineColumn line = FindLineColumn(source, place.begin);
  const auto begin = static_cast<size_t>(place.begin) - static_cast<size_t>(line.column - 1);
  const std::string_view text = source.substr(begin, source.find('\n', begin) - begin);
  return status.MovedTo(bound.type_span)
      .Because(fmt::format("line {} of {}", line.line, bound.type->name))
      .Detail(fmt::format("line {}: {}", line.line,
                          text.substr(std::min(text.find_first_not_of(" \t"), text.size()))));
}

struct ArgumentOfTorch {
  std::string_view optimizer, torch, ours;
};
// By torch.optim's names; the optimizers that are not here follow another rule.
constexpr std::array<ArgumentOfTorch, 24> kArguments = {{
    {"SGD", "lr", "learning_rate"},
    {"SGD", "momentum", "momentum"},
    {"SGD", "nesterov", "nesterov"},
    {"Adam", "lr", "learning_rate"},
    {"Adam", "betas", "beta_1 beta_2"},
    {"Adam", "eps", "epsilon"},
    {"Adam", "amsgrad", "amsgrad"},
    {"AdamW", "lr", "learning_rate"},
    {"AdamW", "betas", "beta_1 beta_2"},
    {"AdamW", "eps", "epsilon"},
    {"AdamW", "weight_decay", "weight_decay"},
    {"Adamax", "lr", "learning_rate"},
    {"Adamax", "betas", "beta_1 beta_2"},
    {"Adamax", "eps", "epsilon"},
    {"RMSprop", "lr", "learning_rate"},
    {"RMSprop", "alpha", "rho"},
    {"RMSprop", "eps", "epsilon"},
    {"RMSprop", "momentum", "momentum"},
    {"RMSprop", "centered", "centered"},
    {"Adagrad", "lr", "learning_rate"},
    {"Adagrad", "initial_accumulator_value", "initial_accumulator_value"},
    {"Adagrad", "eps", "epsilon"},
    {"Adadelta", "lr", "learning_rate"},
    {"Adadelta", "rho", "rho"},
}};

const models::OptimizerDescription* FindOptimizer(const std::string& name, bool keras) {
  const bool known = keras || std::any_of(kArguments.begin(), kArguments.end(),
                                          [&](const auto& one) { return one.optimizer == name; });
  for (const models::OptimizerDescription& one : models::Optimizers()) {
    if (known && one.name == name) {
      return &one;
    }
  }
  return nullptr;
}

// Our arguments of torch's; fails at one that changes the rule.
Status ReadArguments(const Optimizer& optimizer, std::map<std::string, double>* read) {
  for (const auto& [name, values] : optimizer.arguments) {
    const std::string& argument = name;  // a structured binding cannot be captured
    const auto found =
        std::find_if(kArguments.begin(), kArguments.end(), [&](const ArgumentOfTorch& one) {
          return one.optimizer == optimizer.name && one.torch == argument;
        });
    const bool other = name == "eps" && found == kArguments.end();  // Adadelta's
    if (found == kArguments.end() && !other) {
      // foreach, fused and the like say how, not what; zero means none.
      const bool how =
          name == "foreach" || name == "fused" || name == "capturable" || name == "differentiable";
      if (how || values.empty() || values.front() == 0) {
        continue;
      }
      return InvalidArgument(fmt::format("{}={} of torch.optim.{} has no counterpart", name,
                                         values.front(), optimizer.name))
          .Hint("leave it out, or name another in WITH: model.optimizer='Adam'");
    }
    const std::string_view ours = other ? "epsilon" : found->ours;
    const size_t blank = ours.find(' ');
    if (values.size() != (blank == std::string_view::npos ? 1U : 2U)) {
      return InvalidArgument(
          fmt::format("{} of torch.optim.{} is no number", name, optimizer.name));
    }
    (*read)[std::string(ours.substr(0, blank))] = values[0];
    if (blank != std::string_view::npos) {
      (*read)[std::string(ours.substr(blank + 1))] = values[1];
    }
  }
  return OkStatus();
}

// Ours are spelled as in Keras. The weights of the model do not tell what else an argument does:
// that is refused where it is not nothing.
Status ReadKerasArguments(const Optimizer& optimizer, const models::OptimizerDescription& ours,
                          std::map<std::string, double>* read) {
  for (const auto& [name, values] : optimizer.arguments) {
    const std::string& argument = name;
    const bool known =
        std::any_of(ours.arguments.begin(), ours.arguments.end(),
                    [&](const models::OptimizerArgument& one) { return one.name == argument; });
    const double value = values.empty() ? 0 : values.front();
    if (known) {
      (*read)[name] = value;
    } else if (value != 0 && name != "jit_compile" && name != "ema_momentum" &&
               name != "is_legacy_optimizer") {
      return InvalidArgument(
                 fmt::format("{}={} of Keras's {} has no counterpart", name, value, optimizer.name))
          .Hint("leave it out, or name another in WITH: model.optimizer='Adam'");
    }
  }
  return OkStatus();
}

// What the source's optimizer() says, where WITH does not.
Status TakeOptimizer(const BoundTrain& bound, const Optimizer& optimizer, models::ModelSpec* spec) {
  if (optimizer.name.empty() || bound.attributes.Given("model.optimizer")) {
    return OkStatus();
  }
  const bool keras = bound.user_type->version.type == models::kKerasInPython;
  const models::OptimizerDescription* description = FindOptimizer(optimizer.name, keras);
  if (description == nullptr) {
    return InvalidArgument(fmt::format("optimizer() is {}{}, which has no counterpart",
                                       keras ? "Keras's " : "torch.optim.", optimizer.name))
        .Hint(fmt::format("SGD, Adam, AdamW, Adamax, RMSprop, Adagrad{} and Adadelta have; or "
                          "model.optimizer in WITH names one of Sluice's",
                          keras ? ", Nadam, Ftrl" : ""));
  }
  std::map<std::string, double> arguments;
  RETURN_IF_ERROR(keras ? ReadKerasArguments(optimizer, *description, &arguments)
                        : ReadArguments(optimizer, &arguments));
  models::OptimizerSpec* made = spec->mutable_deep_optimizer();
  made->Clear();
  made->set_name(description->name);
  made->set_decays_vectors(true);  // torch.optim and Keras take all parameters for weights
  for (const models::OptimizerArgument& argument : description->arguments) {
    const std::string name = "optimizer." + argument.name;
    const auto from_torch = arguments.find(argument.name);
    double value = from_torch == arguments.end() ? argument.default_value : from_torch->second;
    if (argument.is_flag) {
      SetAttribute(argument.name, bound.attributes.Flag(name).value_or(value != 0),
                   made->mutable_arguments());
      continue;
    }
    value = bound.attributes.Number(name).value_or(value);
    if (argument.max > argument.min && !(value >= argument.min && value <= argument.max)) {
      return InvalidArgument(fmt::format("{} of optimizer() must be from {} to {}, not {}",
                                         argument.name, argument.min, argument.max, value));
    }
    SetAttribute(argument.name, value, made->mutable_arguments());
  }
  *spec->mutable_wide_optimizer() = *made;
  return OkStatus();
}

// WITH wins over the source.
bool UsesOwnLoss(const BoundTrain& bound) {
  return !bound.attributes.Given("model.loss");
}

// A form is some kilobytes, or the values of dense parameters. Those of trainings that are about to
// begin stay.
constexpr catalog::KeepLimits kKeptForms = {200, int64_t{512} << 20, int64_t{3600} * 1'000'000};

std::string NameOfClass(const std::string& type) {
  return type.substr(type.rfind('.') + 1);
}

// The compiled form of a type in Python: kept from an earlier statement, or made and kept. The
// training begins with its values: it is what the plan names as the type that was brought.
Result<std::string> Compile(const BoundTrain& bound, const Options& options,
                            plan::TrainPlan* plan) {
  const UserTypeSource& type = *bound.user_type;
  const models::DescribedSource parts = models::SplitDescribedSource(type.text);
  ASSIGN_OR_RETURN(const models::PythonType described, models::ReadPythonType(parts.description));
  const PythonSource source{parts.text, NameOfClass(type.version.name),
                            type.version.type == models::kKerasInPython};
  ASSIGN_OR_RETURN(const models::Loss loss, models::Loss::Make(plan->model()));
  PythonModelUse use{plan->model().features(),
                     {},
                     static_cast<int64_t>(loss.outputs()),
                     plan->seed(),
                     UsesOwnLoss(bound)};
  for (const models::AttributeSpec& own : described.attributes) {
    for (const models::Attribute& attribute : plan->model().attributes()) {
      if (attribute.name() == own.name) {
        use.attributes.push_back(&attribute);
      }
    }
  }
  const std::string key = KeyOfPythonModel(source, use, options.user_role, described.framework);
  const auto begins_with = [&](const catalog::ModelVersion& form) {
    plan->mutable_brought()->set_schema(form.schema);
    plan->mutable_brought()->set_name(form.name);
    plan->mutable_brought()->set_version(form.version);
  };
  const auto kept = options.model_types->Find(catalog::kCompiledTypes, key, std::nullopt);
  if (kept.ok()) {
    begins_with(*kept);
    plan->add_notes(fmt::format("compiled by {} before", described.framework));
    RETURN_IF_ERROR(options.model_types->KeepLatest(*kept, kKeptForms));
    return options.model_types->LoadWeights(*kept);
  }
  if (kept.status().code() != Code::kNotFound) {
    return kept.status();
  }
  const auto begin = std::chrono::steady_clock::now();
  ASSIGN_OR_RETURN(std::string compiled, CompilePythonModel(source, use, options.python));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  plan->add_notes(fmt::format("compiled by {} in {:.1f} s, and kept for the next training",
                              described.framework, took.count()));
  catalog::ModelVersion form;
  form.schema = catalog::kCompiledTypes;
  form.name = key;
  form.type = bound.type->name;
  form.statement = fmt::format("compiled form of {}", bound.type->name);
  ASSIGN_OR_RETURN(const catalog::ModelVersion stored,
                   options.model_types->Put(form, compiled, false));
  begins_with(stored);
  RETURN_IF_ERROR(options.model_types->KeepLatest(stored, kKeptForms));
  return compiled;
}

}  // namespace

Status ImportUserType(const BoundTrain& bound, const Options& options, plan::TrainPlan* plan) {
  const UserTypeSource& source = *bound.user_type;
  plan::UserType* brought = plan->mutable_brought();
  brought->set_schema(source.version.schema);
  brought->set_name(source.version.name);
  brought->set_version(source.version.version);
  brought->set_language(source.version.type);
  models::ImportSource wanted{source.version.type, source.text, {}};
  std::string compiled;
  if (models::IsPython(source.version.type)) {
    Result<std::string> made = Compile(bound, options, plan);
    if (!made.ok()) {
      return FromSource(made.status(), bound);
    }
    compiled = std::move(made).value();
    wanted.text = compiled;
    wanted.own_loss = UsesOwnLoss(bound);
    ASSIGN_OR_RETURN(const models::CompiledModel model, models::ReadCompiledModel(compiled));
    if (wanted.own_loss && !model.losses.empty()) {
      plan->add_notes(fmt::format("what is minimised is loss() in line {} of {}", model.loss_line,
                                  bound.type->name));
    }
    const Status optimizer = TakeOptimizer(bound, model.optimizer, plan->mutable_model());
    if (!optimizer.ok()) {
      return optimizer.MovedTo(bound.type_span)
          .Because(fmt::format("line {} of {}", model.optimizer.line, bound.type->name));
    }
  }
  if (bound.attributes.Declared("model.frozen")) {
    wanted.frozen = bound.attributes.Texts("model.frozen").value_or(std::vector<std::string>());
  }
  brought->mutable_frozen()->Add(wanted.frozen.begin(), wanted.frozen.end());
  wanted.most_bytes = options.memory_bytes;
  models::ImportReport report;
  Status read = models::ImportNetwork(wanted, plan->mutable_model(), &report);
  if (!read.ok()) {
    const Span frozen = bound.attributes.SpanOf("model.frozen");
    const bool of_frozen = read.message().find("model.frozen") != std::string::npos;
    return read.MovedTo(of_frozen && frozen.valid() ? frozen : bound.type_span);
  }
  plan->mutable_notes()->Add(report.notes.begin(), report.notes.end());
  std::string unread;
  for (const std::string& feature : report.unread_features) {
    if (bound.select.columns.Find(feature)) {  // but no feature derived in addition to a column
      unread += (unread.empty() ? "" : ", ") + feature;
    }
  }
  if (!unread.empty()) {
    plan->add_told(fmt::format("{} reads nothing of {}", bound.type->name, unread));
  }
  return OkStatus();
}

}  // namespace sluice::planner
