#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "models/linear_optimum.h"
#include "models/metrics/metric.h"
#include "models/model.h"
#include "models/trees/gradient_boosting.h"
#include "planner/choose.h"
#include "planner/model_spec_internal.h"
#include "planner/plan_train_internal.h"

namespace sluice::planner {
namespace {

constexpr uint32_t kFoldPatience = 10;  // of trees
// With few rows, a network whose weights are held back often does better on others (of two classes
// and three: titanic, breast_cancer, wine, iris; digits with the smaller one), or worse (numbers).
constexpr double kWeightDecays[] = {0.5, 2};

// A second training takes as long as the first.
constexpr int64_t kMostRowsToRefit = 1'000'000;

// Where one statement may take several trainings: in this process, from the beginning, without
// checkpoints, which are of one training.
bool MayTrainSeveralTimes(const BoundTrain& bound, const plan::TrainPlan& plan) {
  return plan.strategy().kind() == plan::Strategy::LOCAL &&
         plan.strategy().mode() == plan::Strategy::ASYNCHRONOUS && !bound.base &&
         !bound.attributes.Given("engine.checkpoint_dir");
}

// Uses what is known of the plan: its split.
Schedule ChosenSchedule(const BoundTrain& bound, const plan::TrainPlan& plan) {
  const AttributeSet& attributes = bound.attributes;
  const bool epochs_open = !attributes.Given("train.epoch") && !attributes.Given("train.max_steps");
  const bool never_stops = attributes.Given("train.early_stopping_rounds") &&
                           attributes.Integer("train.early_stopping_rounds").value_or(0) == 0;
  return ChooseSchedule(bound.type->family, bound.statistics.rows, epochs_open,
                        plan.split().kind() != plan::Split::NONE && !never_stops);
}

constexpr char kStoppingMetric[] = "train.early_stopping_metric";

std::optional<std::string> WantedMetric(const AttributeSet& attributes) {
  return attributes.Declared(kStoppingMetric) ? attributes.Text(kStoppingMetric) : std::nullopt;
}

std::string StoppingMetric(const AttributeSet& attributes, const models::ModelSpec& model) {
  if (const std::optional<std::string> wanted = WantedMetric(attributes)) {
    return models::Metrics::CanonicalName(*wanted);
  }
  const models::Task task = models::TaskOf(model);
  if (task == models::Task::kQuantiles) {
    return "pinball_loss";
  }
  if (models::HasOwnLoss(model)) {  // which need not make probabilities, or means
    return "own_loss";
  }
  return task == models::Task::kBinary || task == models::Task::kMulticlass ? "log_loss" : "rmse";
}

bool SetsStepping(const std::string& name) {
  return name == "train.epoch" || name == "train.max_steps" || name == "train.batch_size" ||
         name == "train.early_stopping_rounds" || name == kStoppingMetric ||
         name == "model.optimizer" || name.starts_with("optimizer.");
}

// Attributes that apply only when gradients are exchanged.
bool SetsExchange(const std::string& name) {
  return name == "engine.num_ps" || name == "engine.max_ps" || name == "engine.replicas" ||
         name == "engine.staleness" || name == "engine.transport" ||
         name == "engine.micro_batches" || name == "engine.strategy";
}

// Whether the statement leaves it open how a network's weights are held back.
bool LeavesWeightsFree(const BoundTrain& bound) {
  if (bound.user_type || bound.type->default_optimizer != "Adam") {
    return false;
  }
  const auto& entries = bound.attributes.entries();
  return std::none_of(entries.begin(), entries.end(), [](const auto& entry) {
    const std::string& name = entry.first;
    return entry.second.given &&
           (name == "model.optimizer" || name == "model.dnn_optimizer" || name == "model.l2" ||
            name.starts_with("optimizer.") || name.starts_with("dnn_optimizer."));
  });
}

}  // namespace

void FillSchedule(const BoundTrain& bound, plan::TrainPlan* plan) {
  const AttributeSet& attributes = bound.attributes;
  if (bound.type->family == models::ModelFamily::kTrees) {
    plan->set_epochs(1);
    plan->set_batch_size(ChosenSchedule(bound, *plan).batch_size);
    return;
  }
  const Schedule chosen = ChosenSchedule(bound, *plan);
  plan->set_epochs(
      static_cast<uint32_t>(attributes.Integer("train.epoch").value_or(chosen.epochs)));
  plan->set_batch_size(
      static_cast<uint32_t>(attributes.Integer("train.batch_size").value_or(chosen.batch_size)));
  plan->set_max_steps(attributes.Integer("train.max_steps").value_or(0));
  plan->set_shuffle(attributes.Flag("train.shuffle").value_or(true));
  if (const std::optional<bool> cache = attributes.Flag("train.disk_cache")) {
    plan->set_disk_cache(*cache ? plan::TrainPlan::CACHE : plan::TrainPlan::NO_CACHE);
  }
}

bool GrownByWorkers(const BoundTrain& bound, const plan::TrainPlan& plan) {
  return !bound.base && models::GradientBoosting::GrowsHere(plan.model());
}

bool TrainsToOptimum(const BoundTrain& bound, const models::Network& network,
                     const plan::TrainPlan& plan) {
  constexpr double kMaxKeptBytes = 256.0 * (1 << 20);  // as workers keep rows
  constexpr double kMaxLogits = 30e6;
  constexpr int64_t kMaxWeights = 2'000'000;
  // Each shard's sums are sent in every pass.
  constexpr int64_t kMaxWeightsToSend = 200'000;
  const bool local = plan.strategy().kind() == plan::Strategy::LOCAL;
  if (bound.type->family != models::ModelFamily::kLinear || bound.base ||
      bound.attributes.Given("engine.checkpoint_dir") ||
      plan.strategy().mode() != plan::Strategy::ASYNCHRONOUS ||
      network.parameter_count() > (local ? kMaxWeights : kMaxWeightsToSend) ||
      !models::LinearOptimum::Finds(plan.model())) {
    return false;
  }
  for (const auto& [name, entry] : bound.attributes.entries()) {
    if (entry.given && (SetsStepping(name) || (!local && SetsExchange(name)))) {
      return false;
    }
  }
  const auto search = models::LinearOptimum::Make(plan.model());
  if (search.ok() && (*search)->one_pass()) {
    return true;  // which keeps no rows
  }
  const double cells = static_cast<double>(network.transform().dense_width()) +
                       static_cast<double>(network.transform().slots().size()) +
                       static_cast<double>(network.transform().label_width()) + 1;
  const auto rows = static_cast<double>(bound.statistics.rows);
  return rows * cells * sizeof(float) <= kMaxKeptBytes &&
         rows * static_cast<double>(network.outputs()) <= kMaxLogits;
}

void TrainToOptimum(plan::TrainPlan* plan) {
  plan->set_optimum(true);
  plan->clear_early_stopping();
  plan::Strategy* strategy = plan->mutable_strategy();
  if (strategy->kind() != plan::Strategy::LOCAL) {
    strategy->set_parameter_servers(0);
    strategy->set_replicas(0);
  }
}

Status CheckStoppingMetric(const AttributeSet& attributes, const models::ModelSpec& model) {
  const std::optional<std::string> wanted = WantedMetric(attributes);
  if (!wanted) {
    return OkStatus();
  }
  std::vector<std::string> names = models::Metrics::StandardNames(model);
  std::erase(names, "calibration");  // is best at 1
  const std::string canonical = models::Metrics::CanonicalName(*wanted);
  if (std::find(names.begin(), names.end(), canonical) != names.end()) {
    return OkStatus();
  }
  return InvalidArgument(fmt::format("a training does not stop by '{}'", *wanted))
      .At(attributes.SpanOf(kStoppingMetric))
      .Hint(fmt::format("{} is one of {}", kStoppingMetric, fmt::join(names, ", ")));
}

void FillEarlyStopping(const BoundTrain& bound, plan::TrainPlan* plan) {
  const AttributeSet& attributes = bound.attributes;
  const bool trees = attributes.Declared("train.num_boost_round");
  const models::Attribute* chosen =
      FindIn(plan->model().attributes(), "train.early_stopping_rounds");
  const int64_t patience = trees && chosen != nullptr ? chosen->integer()
                           : attributes.Given("train.early_stopping_rounds")
                               ? attributes.Integer("train.early_stopping_rounds").value_or(0)
                               : int64_t{ChosenSchedule(bound, *plan).patience};
  if (patience == 0) {
    return;
  }
  if (plan->split().kind() == plan::Split::NONE) {
    if (trees) {
      SetAttribute("train.early_stopping_rounds", int64_t{0},
                   plan->mutable_model()->mutable_attributes());
    }
    if (!bound.chosen_because.empty() || attributes.Given("train.early_stopping_rounds")) {
      plan->add_notes(kNeverStops);
    }
    return;
  }
  plan::EarlyStopping* stopping = plan->mutable_early_stopping();
  stopping->set_patience(static_cast<uint32_t>(patience));
  stopping->set_chosen(!attributes.Given("train.early_stopping_rounds"));
  if (const uint32_t plateau = ChosenSchedule(bound, *plan).plateau; plateau > 0 && !trees) {
    stopping->set_plateau(std::min(plateau, std::max(stopping->patience() / 3, 1U)));
  }
  stopping->set_metric(StoppingMetric(attributes, plan->model()));
}

void FillRefit(const BoundTrain& bound, bool latest, plan::TrainPlan* plan) {
  plan->set_refits(latest && MayTrainSeveralTimes(bound, *plan) &&
                   bound.statistics.rows <= kMostRowsToRefit);
}

void FillFolds(const BoundTrain& bound, plan::TrainPlan* plan) {
  const bool linear = bound.type->family == models::ModelFamily::kLinear;
  const bool trees = bound.type->family == models::ModelFamily::kTrees;
  const uint32_t folds = ChooseFolds(bound.statistics.rows);
  const bool simple = MayTrainSeveralTimes(bound, *plan) && bound.features.group_column().empty();
  const bool at_random =
      plan->split().kind() == plan::Split::RANDOM || plan->split().kind() == plan::Split::NONE;
  if (folds == 0 || !simple || !at_random || !bound.statistics.exact_rows ||
      (linear &&
       (!plan->optimum() || bound.features.label().kind() == models::LabelPlan::VECTOR)) ||
      (trees && FindIn(plan->model().attributes(), "train.early_stopping_rounds") == nullptr)) {
    return;  // a forest has no rounds to choose from
  }
  // Whether it is written, not its value: the value of a parameter is unknown when a client asks
  // for the columns of the answer, which depend on this.
  for (const auto& [name, entry] : bound.attributes.entries()) {
    if (entry.written &&
        (name == "train.epoch" || name == "train.max_steps" ||
         name == "train.early_stopping_rounds" || name == "train.num_boost_round" ||
         name == "validation.select" || name == "split.kind" || name == "split.fraction" ||
         name == "split.column")) {
      return;
    }
  }
  plan->set_folds(folds);
  plan->mutable_split()->set_kind(plan::Split::NONE);
  plan->mutable_split()->set_fraction(0);
  if (linear) {
    return;
  }
  if (trees) {
    auto* notes = plan->mutable_notes();
    notes->erase(std::remove(notes->begin(), notes->end(), kNeverStops), notes->end());
    SetAttribute("train.early_stopping_rounds", int64_t{kFoldPatience},
                 plan->mutable_model()->mutable_attributes());
    plan->mutable_early_stopping()->set_patience(kFoldPatience);
    plan->mutable_early_stopping()->set_chosen(true);
    plan->mutable_early_stopping()->set_metric(StoppingMetric(bound.attributes, plan->model()));
    return;
  }
  const Schedule schedule = ChooseFoldSchedule(bound.statistics.rows);
  plan->set_epochs(schedule.epochs);
  plan::EarlyStopping* stopping = plan->mutable_early_stopping();
  stopping->set_patience(schedule.patience);
  stopping->set_plateau(0);
  stopping->set_chosen(true);
  stopping->set_metric(StoppingMetric(bound.attributes, plan->model()));
  if (LeavesWeightsFree(bound)) {
    plan->mutable_weight_decays()->Add(std::begin(kWeightDecays), std::end(kWeightDecays));
  }
}

}  // namespace sluice::planner
