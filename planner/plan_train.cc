#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "models/features/calendar_parts.h"
#include "models/graph/graph_builder.h"
#include "models/model.h"
#include "parser/printer.h"
#include "planner/checkpoints.h"
#include "planner/choose.h"
#include "planner/decision.h"
#include "planner/error_list.h"
#include "planner/grouped_number.h"
#include "planner/metric_list.h"
#include "planner/model_spec_internal.h"
#include "planner/plan_train_internal.h"
#include "planner/rare_class_internal.h"
#include "planner/same_columns.h"
#include "planner/time_shape.h"

namespace sluice::planner {
namespace {

constexpr char kBatchesPerShard[] = "engine.batches_per_shard";
// Far more than a table of ordinary shards has.
constexpr int64_t kMaxShards = 1'000'000;

// Whether there will be rows that the model was not trained on: a contest judges all of its
// candidates by such rows.
bool HoldsRowsOut(const plan::TrainPlan& plan) {
  return plan.split().kind() != plan::Split::NONE || plan.folds() > 0 || plan.has_contest();
}

Status FillTimeThreshold(const BoundTrain& bound, plan::Split* split) {
  const Span span = bound.attributes.SpanOf("split.column");
  const std::optional<size_t> index = bound.select.columns.Find(split->column());
  SLUICE_CHECK(index.has_value(), "the binder has found split.column");
  std::vector<double> times;
  const DataType type = bound.select.schema.columns[*index].type;
  const auto format = bound.times.find(split->column());
  const bool spelt = format != bound.times.end() && type != DataType::kTimestamp;
  if (spelt) {
    split->set_time_format(format->second.empty() ? "iso" : format->second);
  }
  std::vector<size_t> parts;
  for (const std::string& finer : split->finer_columns()) {
    parts.push_back(*bound.select.columns.Find(finer));
  }
  for (const std::vector<Value>& row : bound.statistics.sample) {
    if (!parts.empty()) {
      std::vector<double> numbers = {static_cast<double>(std::get<int64_t>(row[*index]))};
      for (const size_t part : parts) {
        numbers.push_back(static_cast<double>(std::get<int64_t>(row[part])));
      }
      times.push_back(models::PlaceInCalendar(numbers));
    } else if (spelt) {
      const auto time = TimeOf(row[*index], type, *models::FindTimeFormat(format->second));
      if (time) {
        times.push_back(static_cast<double>(*time));
      }
    } else if (const auto* integer = std::get_if<int64_t>(&row[*index])) {
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

// The columns of a split in the SELECT's spelling.
void SpellSplitColumn(const BoundTrain& bound, plan::Split* split) {
  if (const auto index = bound.select.columns.Find(split->column())) {
    split->set_column(bound.select.schema.columns[*index].name);
  }
}

// Once split and folds are known: a threshold is chosen on held-out rows.
void ChooseThreshold(const BoundTrain& bound, plan::TrainPlan* plan) {
  // If a class is rarer than this, a threshold of 0.5 hardly ever predicts it.
  constexpr double kRareClass = 0.2;
  std::string rule = bound.threshold;
  if (rule == "auto") {
    const auto index = bound.select.columns.Find(bound.features.label().column());
    double rarest = 1;
    for (const auto& [value, share] : bound.statistics.columns[*index].common_values) {
      rarest = std::min(rarest, share);
    }
    rule = rarest < kRareClass && HoldsRowsOut(*plan) ? "f1" : "";
  }
  plan->set_threshold(rule);
}

// The model's errors have no spans but name the faulty attribute; adds that attribute's place.
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

// If the statement does not say how a number with a heavy tail is learnt, trials on validation rows
// decide.
void FillLabelTrials(const BoundTrain& bound, plan::TrainPlan* plan) {
  const AttributeSet& attributes = bound.attributes;
  if (bound.other_scales.empty() || bound.type->family == models::ModelFamily::kTrees ||
      plan->model().loss() != "squared" || models::HasOwnLoss(plan->model()) ||
      attributes.Given("train.epoch") || attributes.Given("train.max_steps") ||
      attributes.Given("engine.checkpoint_dir")) {
    return;
  }
  plan->mutable_label_trials()->Add(bound.other_scales.begin(), bound.other_scales.end());
  plan->add_notes(fmt::format(
      "a few of the numbers of {} are far above the others: it is learnt as it is, as its square "
      "root, or as its logarithm, as short trainings tell on validation rows; train.label_scale "
      "says which",
      bound.features.label().column()));
}

// For a model type that is a graph: builds the graph, unless the model to continue from has one.
Status FillGraph(const BoundTrain& bound, const Options& options, plan::TrainPlan* plan) {
  models::ModelSpec* model = plan->mutable_model();
  if (bound.base) {
    if (bound.base->plan.model().has_graph()) {
      *model->mutable_graph() = bound.base->plan.model().graph();
    }
    return OkStatus();
  }
  if (bound.user_type) {
    return ImportUserType(bound, options, plan);
  }
  if (!bound.type->build) {
    return OkStatus();
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> notes,
                   models::BuildGraph(bound.type->build, model));
  plan->mutable_notes()->Add(notes.begin(), notes.end());
  return OkStatus();
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
  if (const Status built = FillGraph(bound, options, plan); !built.ok()) {
    return AtItsAttribute(built, bound);
  }
  Result<std::unique_ptr<models::Network>> made = models::Network::Make(*model);
  if (!made.ok() && bound.user_type) {
    return made.status().MovedTo(bound.type_span);
  }
  if (!made.ok()) {
    return AtItsAttribute(made.status(), bound);
  }
  *network = std::move(made).value();
  plan->set_parameter_count((*network)->parameter_count());
  return OkStatus();
}

void FillNames(const parser::TrainStatement& statement, const BoundTrain& bound,
               plan::TrainPlan* plan) {
  plan->set_statement(statement.written);
  plan->set_select(bound.select.text);
  plan->set_into_schema(statement.into.schema);
  plan->set_into_name(statement.into.name);
  plan->set_must_be_new(bound.must_be_new);
  plan->set_database_patience_seconds(
      static_cast<uint32_t>(bound.attributes.Integer("engine.database_patience").value_or(0)));
  plan->set_new_snapshot(bound.attributes.Flag("engine.new_snapshot").value_or(false));
  plan->set_chosen_because(bound.chosen_because);
  plan->mutable_notes()->Add(bound.notes.begin(), bound.notes.end());
  plan->set_baseline(bound.baseline);
  for (const auto& [name, entry] : bound.attributes.entries()) {
    if (entry.given && !entry.spec->without_effect) {
      SetAttribute(name, *entry.value, plan->mutable_given());
    }
  }
  plan->mutable_told()->Add(bound.assumptions.begin(), bound.assumptions.end());
  plan->mutable_warnings()->Add(bound.warnings.begin(), bound.warnings.end());
  const models::LabelPlan& label = bound.features.label();
  for (std::string warning :
       {WarnOfFewRows(label, bound.statistics.rows), WarnOfSpellings(label)}) {
    if (!warning.empty()) {
      plan->add_warnings(std::move(warning));
    }
  }
  for (const LeftOutColumn& column : bound.left_out) {
    plan::LeftOut* left_out = plan->add_left_out();
    left_out->set_column(column.name);
    left_out->set_reason(column.reason);
  }
  const std::vector<std::string> columns =
      bound.base ? TrainedColumns(bound.base->plan) : PrintColumns(statement.columns);
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
  const bool widened = split_status.ok() && WidenForRareClass(bound, split);
  bool latest = false;  // the latest rows validate, without being asked for
  if (split_status.ok() && split->kind() == plan::Split::RANDOM && !bound.series.empty() &&
      bound.attributes.Text("split.kind").value_or("auto") == "auto") {
    split->set_kind(plan::Split::TIME);
    split->set_column(bound.series.columns.front());
    split->mutable_finer_columns()->Assign(bound.series.columns.begin() + 1,
                                           bound.series.columns.end());
    latest = true;
    plan->add_told(
        fmt::format("validated on the latest rows: they are stored in the order of {}, so "
                    "the model is for later ones; split.kind='random' if it is not",
                    bound.series.order));
  }
  if (split_status.ok() && split->kind() == plan::Split::TIME) {
    errors.Add(FillTimeThreshold(bound, split));
  }
  FillSchedule(bound, plan);
  errors.Add(CheckStoppingMetric(bound.attributes, plan->model()));
  FillEarlyStopping(bound, plan);
  if (const auto metrics = bound.attributes.Text("validation.metrics")) {
    const auto names =
        ReadMetrics(*metrics, plan->model(), bound.attributes.SpanOf("validation.metrics"));
    errors.Add(names.status());
    if (names.ok()) {
      plan->mutable_metrics()->Add(names->begin(), names->end());
    }
  }
  Work work;
  work.rows = bound.statistics.rows;
  work.batch_size = plan->batch_size();
  work.columns = plan->model().features().features_size();
  // How many epochs pass before nothing improves is not known: count one of them.
  work.epochs = plan->early_stopping().plateau() > 0 ? 1 : plan->epochs();
  work.parameters = plan->parameter_count();
  if (network != nullptr) {
    for (const models::DenseTensor& tensor : network->dense()) {
      work.dense_parameters += static_cast<int64_t>(tensor.size());
    }
  }
  work.trees = bound.type->family == models::ModelFamily::kTrees;
  work.grows = work.trees && GrownByWorkers(bound, *plan);
  std::vector<std::string> notes;
  errors.Add(ChooseStrategy(bound.attributes, work, options, plan->mutable_strategy(), &notes));
  plan->mutable_notes()->Add(notes.begin(), notes.end());
  Status wrong = errors.Take();
  if (wrong.ok() && network != nullptr && TrainsToOptimum(bound, *network, *plan)) {
    TrainToOptimum(plan);
  }
  if (wrong.ok()) {
    FillFolds(bound, plan);
    FillRefit(bound, latest, plan);
    ReportRareClass(bound, widened, plan);
  }
  ChooseThreshold(bound, plan);
  FillLabelTrials(bound, plan);
  wrong.Add(ReadCalibration(bound.attributes, plan->mutable_model()));
  return wrong;
}

// Everything that does not depend on where the rows are. `network` is null for trees.
Status FillTraining(const parser::TrainStatement& statement, const BoundTrain& bound,
                    const Options& options, plan::TrainPlan* plan,
                    std::unique_ptr<models::Network>* network) {
  FillNames(statement, bound, plan);
  Status errors = FillModel(bound, options, plan, network);
  errors.Add(FillDecisions(bound, network->get(), options, plan));
  errors.Add(FillCheckpoints(statement, *bound.type, bound.attributes, options, plan));
  if (*network != nullptr) {
    errors.Add(CheckMemory(bound, **network, options.memory_bytes, *plan));
  }
  plan->set_estimated_rows(bound.statistics.rows);
  plan->set_exact_rows(bound.statistics.exact_rows);
  if (errors.ok() && bound.type->family == models::ModelFamily::kTrees) {
    errors.Add(CheckForest(bound, options.memory_bytes, *plan));
  }
  return errors;
}

}  // namespace

Status CheckHeldOutRows(const BoundTrain& bound, const plan::TrainPlan& plan) {
  if (HoldsRowsOut(plan)) {
    return OkStatus();
  }
  Status errors;
  if (plan.threshold() == "f1" || plan.threshold().starts_with("cost:")) {
    errors.Add(
        InvalidArgument(
            fmt::format("predict.threshold='{}' is chosen on validation rows, and there are none",
                        plan.threshold()))
            .At(bound.attributes.SpanOf("predict.threshold"))
            .Hint("split.fraction=0.2 sets some aside; or give a number"));
  }
  if (!plan.model().calibration().method().empty()) {
    errors.Add(InvalidArgument("train.calibrate is fitted on validation rows, and there are none")
                   .At(bound.attributes.SpanOf("train.calibrate"))
                   .Hint("split.fraction=0.2 sets some aside"));
  }
  return errors;
}

// A queue of shards is in the memory of one process.
Status CheckShards(const BoundTrain& bound, int64_t rows_per_shard) {
  const int64_t shards = bound.statistics.rows / rows_per_shard;
  if (shards <= kMaxShards) {
    return OkStatus();
  }
  return InvalidArgument(
             fmt::format("shards of {} rows would be {} of them; at most {} are possible",
                         GroupDigits(rows_per_shard), GroupDigits(shards), GroupDigits(kMaxShards)))
      .At(bound.attributes.SpanOf(kBatchesPerShard));
}

Result<plan::Plan> PlanTrain(const parser::TrainStatement& statement, const BoundTrain& bound,
                             catalog::DataSource& source, const Options& options) {
  plan::Plan result;
  plan::TrainPlan* plan = result.mutable_train();
  std::unique_ptr<models::Network> network;
  RETURN_IF_ERROR(FillTraining(statement, bound, options, plan, &network));
  FillWithoutEffect(bound, plan);
  const plan::Strategy& strategy = plan->strategy();
  const bool local = strategy.kind() == plan::Strategy::LOCAL;
  const bool trees = bound.type->family == models::ModelFamily::kTrees;
  const std::optional<int64_t> batches =
      trees ? std::nullopt : bound.attributes.Integer(kBatchesPerShard);
  // The optimum depends on the cut of the rows, not on where the sums are computed; which rows
  // judge trees, too.
  plan->set_rows_per_shard(
      ChooseRowsPerShard(bound.statistics.rows, plan->batch_size(),
                         plan->optimum() || trees ? plan::Strategy() : strategy, batches));
  if (batches.has_value()) {
    RETURN_IF_ERROR(CheckShards(bound, plan->rows_per_shard()));
  }
  if (local && !batches.has_value() && strategy.mode() == plan::Strategy::ASYNCHRONOUS &&
      !plan->optimum()) {
    plan->set_rows_per_shard(
        std::max(plan->rows_per_shard(),
                 RowsOfWholeTable(bound.statistics.rows, bound.features.features_size(),
                                  plan->batch_size())));
  }
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

Result<plan::TrainPlan> PlanCandidate(const parser::TrainStatement& statement,
                                      const BoundTrain& bound, const Options& options,
                                      const plan::TrainPlan& first) {
  plan::TrainPlan plan;
  std::unique_ptr<models::Network> network;
  RETURN_IF_ERROR(FillTraining(statement, bound, options, &plan, &network));
  plan.set_rows_per_shard(first.rows_per_shard());
  plan.set_estimated_shards(first.estimated_shards());
  plan.set_cut_method(first.cut_method());
  EstimateMemory(bound, network.get(), &plan);
  return plan;
}

}  // namespace sluice::planner
