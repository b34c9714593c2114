#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "models/linear_optimum.h"
#include "models/model.h"
#include "parser/printer.h"
#include "planner/bind_train_internal.h"
#include "planner/checkpoints.h"
#include "planner/choose.h"
#include "planner/error_list.h"
#include "planner/grouped_number.h"
#include "planner/metric_list.h"
#include "planner/model_spec_internal.h"
#include "planner/same_columns.h"
#include "planner/training_memory.h"

namespace sluice::planner {
namespace {

// Adam's two moments beside each weight, and the gradient.
constexpr int64_t kFloatsPerParameter = 4;

Status FillTimeThreshold(const BoundTrain& bound, plan::Split* split) {
  const Span span = bound.attributes.SpanOf("split.column");
  const std::optional<size_t> index = bound.select.columns.Find(split->column());
  SLUICE_CHECK(index.has_value(), "the binder has found split.column");
  std::vector<double> times;
  for (const std::vector<Value>& row : bound.statistics.sample) {
    if (const auto* integer = std::get_if<int64_t>(&row[*index])) {
      times.push_back(static_cast<double>(*integer));
    } else if (const auto* number = std::get_if<double>(&row[*index]);
               number != nullptr && std::isfinite(*number)) {
      times.push_back(*number);
    }
  }
  if (times.empty()) {
    return InvalidArgument(
               fmt::format("split.column '{}' holds neither times nor numbers", split->column()))
        .At(span);
  }
  std::sort(times.begin(), times.end());
  const auto at = static_cast<size_t>(static_cast<double>(times.size()) * (1 - split->fraction()));
  split->set_threshold(times[std::min(at, times.size() - 1)]);
  return OkStatus();
}

// The columns of a split must be named as the SELECT spells them.
void SpellSplitColumn(const BoundTrain& bound, plan::Split* split) {
  if (const auto index = bound.select.columns.Find(split->column())) {
    split->set_column(bound.select.schema.columns[*index].name);
  }
}

// What is known of the plan: its split.
Schedule ChosenSchedule(const BoundTrain& bound, const plan::TrainPlan& plan) {
  const AttributeSet& attributes = bound.attributes;
  const bool epochs_open = !attributes.Given("train.epoch") && !attributes.Given("train.max_steps");
  const bool never_stops = attributes.Given("train.early_stopping_rounds") &&
                           attributes.Integer("train.early_stopping_rounds").value_or(0) == 0;
  return ChooseSchedule(bound.type->family, bound.statistics.rows, epochs_open,
                        plan.split().kind() != plan::Split::NONE && !never_stops);
}

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
}

// Whether a linear model is computed rather than trained: where nothing is said of how, and its
// rows, which are read again and again, stay in memory.
bool MeetsOptimum(const BoundTrain& bound, const models::Network& network,
                  const plan::TrainPlan& plan) {
  constexpr double kMostKeptBytes = 256.0 * (1 << 20);  // as workers keep rows
  constexpr double kMostLogits = 30e6;
  constexpr int64_t kMostWeights = 2'000'000;
  if (bound.type->family != models::ModelFamily::kLinear || bound.base ||
      bound.attributes.Given("engine.checkpoint_dir") ||
      plan.strategy().kind() != plan::Strategy::LOCAL ||
      plan.strategy().mode() != plan::Strategy::ASYNCHRONOUS ||
      network.parameter_count() > kMostWeights || !models::LinearOptimum::Finds(plan.model())) {
    return false;
  }
  for (const auto& [name, entry] : bound.attributes.entries()) {
    if (entry.given && (name == "train.epoch" || name == "train.max_steps" ||
                        name == "train.batch_size" || name == "train.early_stopping_rounds" ||
                        name == "model.optimizer" || name.starts_with("optimizer."))) {
      return false;
    }
  }
  const double cells = static_cast<double>(network.transform().dense_width()) +
                       static_cast<double>(network.transform().slots().size()) +
                       static_cast<double>(network.transform().label_width()) + 1;
  const auto rows = static_cast<double>(bound.statistics.rows);
  return rows * cells * sizeof(float) <= kMostKeptBytes &&
         rows * static_cast<double>(network.outputs()) <= kMostLogits;
}

std::string StoppingMetric(const models::ModelSpec& model) {
  const models::Task task = models::TaskOf(model);
  return task == models::Task::kBinary || task == models::Task::kMulticlass ? "log_loss" : "rmse";
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
      plan->add_notes("no early stopping: there are no validation rows");
    }
    return;
  }
  plan::EarlyStopping* stopping = plan->mutable_early_stopping();
  stopping->set_patience(static_cast<uint32_t>(patience));
  stopping->set_chosen(!attributes.Given("train.early_stopping_rounds"));
  if (const uint32_t plateau = ChosenSchedule(bound, *plan).plateau; plateau > 0 && !trees) {
    stopping->set_plateau(std::min(plateau, std::max(stopping->patience() / 3, 1U)));
  }
  stopping->set_metric(StoppingMetric(plan->model()));
}

// Where nothing is said of how long to train, and on what: few rows are judged by folds.
void FillFolds(const BoundTrain& bound, plan::TrainPlan* plan) {
  const uint32_t folds = ChooseFolds(bound.type->family, bound.statistics.rows);
  const bool simple = plan->strategy().kind() == plan::Strategy::LOCAL &&
                      plan->strategy().mode() == plan::Strategy::ASYNCHRONOUS && !bound.base &&
                      !bound.attributes.Given("engine.checkpoint_dir") &&
                      bound.features.group_column().empty();
  const bool at_random =
      plan->split().kind() == plan::Split::RANDOM || plan->split().kind() == plan::Split::NONE;
  if (folds == 0 || !simple || !at_random || !bound.statistics.exact_rows) {
    return;
  }
  for (const auto& [name, entry] : bound.attributes.entries()) {
    if (entry.given &&
        (name == "train.epoch" || name == "train.max_steps" ||
         name == "train.early_stopping_rounds" || name == "validation.select" ||
         name == "split.kind" || name == "split.fraction" || name == "split.column")) {
      return;
    }
  }
  const Schedule schedule = ChooseFoldSchedule(bound.statistics.rows);
  plan->set_folds(folds);
  plan->set_epochs(schedule.epochs);
  plan->mutable_split()->set_kind(plan::Split::NONE);
  plan->mutable_split()->set_fraction(0);
  plan::EarlyStopping* stopping = plan->mutable_early_stopping();
  stopping->set_patience(schedule.patience);
  stopping->set_plateau(0);
  stopping->set_chosen(true);
  stopping->set_metric(StoppingMetric(plan->model()));
}

// Once the strategy is known, and how the rows are cut. `network` is null for trees.
void EstimateMemory(const BoundTrain& bound, const models::Network* network,
                    plan::TrainPlan* plan) {
  const TrainingMemory memory =
      network == nullptr
          ? EstimateTreeMemory(*plan, bound.statistics)
          : EstimateNetworkMemory(*plan, *network, bound.select.schema, bound.statistics);
  plan->set_estimated_memory_bytes(memory.worker);
  plan->set_estimated_server_memory_bytes(memory.server);
  plan->set_estimated_kept_bytes(memory.kept);
}

// A process that is given less than it takes would be started and die, again and again.
Status CheckProcessMemory(const BoundTrain& bound, const plan::TrainPlan& plan) {
  const plan::Strategy& strategy = plan.strategy();
  const int64_t limit = strategy.memory_bytes();
  const int64_t worker = plan.estimated_memory_bytes() - plan.estimated_kept_bytes();
  const int64_t server = plan.estimated_server_memory_bytes();
  if (strategy.kind() == plan::Strategy::LOCAL || limit <= 0 || std::max(worker, server) <= limit) {
    return OkStatus();
  }
  return ResourceExhausted(
             fmt::format("a {} of this training takes about {}, and engine.memory is {}",
                         worker >= server ? "worker" : "parameter server",
                         FormatBytes(std::max(worker, server)), FormatBytes(limit)))
      .SqlState("53200")
      .At(bound.attributes.SpanOf("engine.memory"))
      .Hint("a larger engine.memory, or none: it is estimated then");
}

// The model knows no spans; its errors name the attribute that is wrong.
Status AtItsAttribute(const Status& status, const BoundTrain& bound) {
  const Diagnostic& diagnostic = status.diagnostics().front();
  if (diagnostic.span.valid()) {
    return status;
  }
  for (const auto& [name, entry] : bound.attributes.entries()) {
    if (entry.given && diagnostic.message.find("attribute " + name + " ") != std::string::npos) {
      return Status(status).At(entry.value_span);
    }
  }
  const Span loss = bound.attributes.SpanOf("model.loss");
  return Status(status).At(loss.valid() ? loss : bound.select.span);
}

// Attributes that are right, and do nothing for this training: whoever wrote them is told.
void FillWithoutEffect(const BoundTrain& bound, plan::TrainPlan* plan) {
  const AttributeSet& attributes = bound.attributes;
  for (const std::string& attribute : attributes.WithoutEffect()) {
    plan->add_without_effect(attribute);
  }
  const bool trees = bound.type->family == models::ModelFamily::kTrees;
  if (plan->strategy().kind() == plan::Strategy::LOCAL) {
    for (const char* name :
         {"engine.num_workers", "engine.min_workers", "engine.max_workers", "engine.num_ps",
          "engine.replicas", "engine.staleness", "engine.transport", "engine.on_poison",
          "engine.cpu", "engine.memory", "engine.priority"}) {
      const int64_t no_fleet = std::string_view(name).ends_with("workers") ? 1 : 0;
      const bool says_so = attributes.Integer(name) == no_fleet;
      if (attributes.Given(name) && !says_so) {
        plan->add_without_effect(fmt::format(
            "{}: no effect: {}", name,
            trees ? "boosted trees are trained in one process"
                  : "this training runs in one process; engine.strategy chooses others"));
      }
    }
  }
  for (const char* name : {"train.save_checkpoints_steps", "engine.keep_checkpoint_max"}) {
    if (attributes.Given(name) && !attributes.Given("engine.checkpoint_dir")) {
      plan->add_without_effect(fmt::format(
          "{}: no effect: without engine.checkpoint_dir there are no checkpoints", name));
    }
  }
  constexpr char kPatience[] = "train.early_stopping_rounds";
  if (attributes.Given(kPatience) && attributes.Integer(kPatience).value_or(0) > 0 &&
      plan->split().kind() == plan::Split::NONE) {
    plan->add_without_effect(fmt::format("{}: no effect: there are no validation rows", kPatience));
  }
}

// Where a reader would look for what makes a network large.
Span SizeSpan(const BoundTrain& bound) {
  for (const char* name : {"model.hidden_units", "model.dnn_hidden_units"}) {
    if (bound.attributes.Given(name)) {
      return bound.attributes.SpanOf(name);
    }
  }
  return bound.select.span;
}

// Before anything of that size is allocated: what the network takes whatever the data, and of its
// tables the rows that the data can touch.
Status CheckMemory(const BoundTrain& bound, const models::Network& network, int64_t limit,
                   const plan::TrainPlan& plan) {
  constexpr auto kBytesPerParameter = static_cast<double>(kFloatsPerParameter * sizeof(float));
  double parameters = 0;
  for (const models::DenseTensor& tensor : network.dense()) {
    parameters += static_cast<double>(tensor.size());
  }
  const auto slots = static_cast<int64_t>(network.transform().slots().size());
  const int64_t touched = std::max<int64_t>(bound.statistics.rows, 1) * slots;
  for (const models::EmbeddingTable& table : network.tables()) {
    parameters += static_cast<double>(std::min(table.rows, touched)) * table.dimension;
  }
  const double batch =
      static_cast<double>(plan.batch_size()) * static_cast<double>(network.bytes_per_row());
  const int64_t needed = WholeBytes(parameters * kBytesPerParameter + batch);
  if (needed <= limit) {
    return OkStatus();
  }
  return ResourceExhausted(fmt::format("training {} takes {}, and --memory-limit is {}",
                                       bound.type->name, FormatBytes(needed), FormatBytes(limit)))
      .SqlState("53200")
      .At(SizeSpan(bound))
      .Detail(fmt::format("{} parameters with their gradients and the optimizer's values, and {} "
                          "for a batch of {} rows",
                          GroupDigits(WholeBytes(parameters)), FormatBytes(WholeBytes(batch)),
                          plan.batch_size()))
      .Hint(
          "smaller layers, fewer buckets or dimensions, a smaller train.batch_size; or a larger "
          "--memory-limit");
}

// `network` is null for trees.
Status FillModel(const BoundTrain& bound, const Options& options, plan::TrainPlan* plan,
                 std::unique_ptr<models::Network>* network) {
  const auto seed = static_cast<uint64_t>(
      bound.attributes.Integer("engine.seed").value_or(static_cast<int64_t>(options.default_seed)));
  plan->set_seed(seed);
  models::ModelSpec* model = plan->mutable_model();
  model->set_type(bound.type->name);
  *model->mutable_features() = bound.features;
  model->set_seed(seed);
  if (bound.type->family == models::ModelFamily::kTrees) {
    return FillTreeSpec(bound, model);
  }
  RETURN_IF_ERROR(FillNetworkSpec(bound, model));
  Result<std::unique_ptr<models::Network>> made = models::Network::Make(*model);
  if (!made.ok()) {
    return AtItsAttribute(made.status(), bound);
  }
  *network = std::move(made).value();
  plan->set_parameter_count((*network)->parameter_count());
  return OkStatus();
}

void FillNames(const parser::TrainStatement& statement, const BoundTrain& bound,
               plan::TrainPlan* plan) {
  plan->set_statement(parser::Print(parser::Statement(statement)));
  plan->set_select(bound.select.text);
  plan->set_into_schema(statement.into.schema);
  plan->set_into_name(statement.into.name);
  plan->set_must_be_new(bound.must_be_new);
  plan->set_database_patience_seconds(
      static_cast<uint32_t>(bound.attributes.Integer("engine.database_patience").value_or(0)));
  plan->set_chosen_because(bound.chosen_because);
  plan->mutable_notes()->Add(bound.notes.begin(), bound.notes.end());
  const std::vector<std::string> columns =
      bound.base ? LearntColumns(bound.base->plan) : PrintColumns(statement.columns);
  plan->mutable_columns()->Add(columns.begin(), columns.end());
  if (bound.base) {
    plan->set_has_base(true);
    plan->set_base_schema(bound.base->version.schema);
    plan->set_base_name(bound.base->version.name);
    plan->set_base_version(bound.base->version.version);
  }
}

// `network` is null for trees.
Status FillDecisions(const BoundTrain& bound, const models::Network* network,
                     const Options& options, plan::TrainPlan* plan) {
  ErrorList errors;
  plan::Split* split = plan->mutable_split();
  const Status split_status =
      ChooseSplit(bound.attributes, bound.type->family, bound.statistics.rows,
                  bound.features.group_column(), plan->seed(), split);
  errors.Add(split_status);
  SpellSplitColumn(bound, split);
  if (split_status.ok() && split->kind() == plan::Split::TIME) {
    errors.Add(FillTimeThreshold(bound, split));
  }
  FillSchedule(bound, plan);
  FillEarlyStopping(bound, plan);
  if (const auto metrics = bound.attributes.Text("validation.metrics")) {
    const auto names = ReadMetrics(*metrics, models::TaskOf(plan->model()),
                                   bound.attributes.SpanOf("validation.metrics"));
    errors.Add(names.status());
    if (names.ok()) {
      plan->mutable_metrics()->Add(names->begin(), names->end());
    }
  }
  Work work;
  work.rows = bound.statistics.rows;
  work.batch_size = plan->batch_size();
  work.columns = plan->model().features().features_size();
  // How many epochs it takes until nothing improves is not known: what counts is one of them.
  work.epochs = plan->early_stopping().plateau() > 0 ? 1 : plan->epochs();
  work.parameters = plan->parameter_count();
  if (network != nullptr) {
    for (const models::DenseTensor& tensor : network->dense()) {
      work.dense_parameters += static_cast<int64_t>(tensor.size());
    }
  }
  work.trees = bound.type->family == models::ModelFamily::kTrees;
  std::vector<std::string> notes;
  errors.Add(ChooseStrategy(bound.attributes, work, options, plan->mutable_strategy(), &notes));
  plan->mutable_notes()->Add(notes.begin(), notes.end());
  Status wrong = errors.Take();
  if (wrong.ok() && network != nullptr && MeetsOptimum(bound, *network, *plan)) {
    plan->set_optimum(true);
    plan->clear_early_stopping();
  } else if (wrong.ok()) {
    FillFolds(bound, plan);
  }
  return wrong;
}

}  // namespace

Result<plan::Plan> PlanTrain(const parser::TrainStatement& statement, BoundTrain bound,
                             catalog::DataSource& source, const Options& options) {
  plan::Plan result;
  plan::TrainPlan* plan = result.mutable_train();
  FillNames(statement, bound, plan);
  std::unique_ptr<models::Network> network;
  Status errors = FillModel(bound, options, plan, &network);
  errors.Add(FillDecisions(bound, network.get(), options, plan));
  errors.Add(FillCheckpoints(statement, *bound.type, bound.attributes, options, plan));
  if (network != nullptr) {
    errors.Add(CheckMemory(bound, *network, options.memory_bytes, *plan));
  }
  if (!errors.ok()) {
    return errors;
  }
  FillWithoutEffect(bound, plan);
  const plan::Strategy& strategy = plan->strategy();
  const bool local = strategy.kind() == plan::Strategy::LOCAL;
  plan->set_estimated_rows(bound.statistics.rows);
  plan->set_exact_rows(bound.statistics.exact_rows);
  plan->set_rows_per_shard(ChooseRowsPerShard(bound.statistics.rows, plan->batch_size(), strategy));
  catalog::DatasetOptions dataset;
  dataset.rows_per_shard = plan->rows_per_shard();
  dataset.many_processes = !local;
  ASSIGN_OR_RETURN(const catalog::CutEstimate cut, source.EstimateCut(bound.select.text, dataset));
  plan->set_estimated_shards(cut.shards);
  plan->set_cut_method(cut.method);
  EstimateMemory(bound, network.get(), plan);
  RETURN_IF_ERROR(CheckProcessMemory(bound, *plan));
  return result;
}

}  // namespace sluice::planner
