#include "models/trees/histogram/learner.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "base/value.h"
#include "models/checksum_internal.h"
#include "models/features/cell_format.h"
#include "models/trees/histogram/forest_memory_internal.h"
#include "models/trees/histogram/round_metrics.h"
#include "models/trees/histogram/rows_here.h"
#include "models/trees/histogram/rows_on_workers_internal.h"
#include "models/trees/histogram/saved_forest.h"
#include "models/trees/histogram/settings.h"
#include "models/trees/histogram/tree_growth.h"
#include "models/trees/histogram/tree_messages_internal.h"

namespace sluice::models::histogram {
namespace {

// The metrics of the training rows cost a part of a round. They are computed every round up to this
// many rows, and every tenth round up to ten times as many; in the first and the last round always.
// Early stopping needs those of the validation rows in every round.
constexpr size_t kRowsToldEveryRound = 100'000;

std::vector<std::string> MetricsOf(const Settings& settings, const Objective& objective) {
  return settings.metrics.empty() ? std::vector<std::string>{objective.DefaultMetric()}
                                  : settings.metrics;
}

class Learner {
 public:
  // All must live as long.
  Learner(const Training& training, const Settings& settings, const Objective& objective,
          Threads* threads, TrainingRows* rows)
      : training_(training),
        parameters_(*training.parameters),
        settings_(settings),
        objective_(objective),
        threads_(*threads),
        rows_(*rows),
        metrics_(MetricsOf(settings, objective)) {}

  // The model in UBJSON.
  Result<std::string> Run();

 private:
  Status ReadRows();
  // The same, with what another learner has remembered.
  Status GoOn();
  Status StartForest();
  void RememberStart(const std::string& base_score);
  uint64_t ChecksumOfBase() const;
  Result<std::string> BestBaseScore();
  Status GrowRounds();
  Status GrowRound();
  // A round that was grown before.
  void AddRound(const ForestRound& round);
  void EndTree(const Tree& tree, size_t output);
  Result<Tree> Grow(const GradientScale& scale, size_t output, GrownTree* grown);
  Status CheckStop() const {
    return training_.stop.stop_requested() ? Cancelled("the training was cancelled") : OkStatus();
  }
  // Replaces the metrics by those of now; those of the training rows only `with_train`.
  Status Evaluate(bool with_train, RoundMetrics* metrics);
  void AddMetrics(std::string_view of, RoundMetrics fresh, RoundMetrics* metrics) const;

  const Training& training_;
  const BoostingParameters& parameters_;
  const Settings& settings_;
  const Objective& objective_;
  Threads& threads_;
  TrainingRows& rows_;
  const std::vector<std::string> metrics_;
  std::unique_ptr<CutPoints> cuts_;
  std::optional<SavedForest> forest_;
  std::optional<ForestStart> start_;  // of the learner that it goes on from
  std::vector<ForestRound> grown_;    // by that one
};

Status Learner::GoOn() {
  ASSIGN_OR_RETURN(ForestMemory memory,
                   ForestMemory::Read(training_.memory.remembered,
                                      {.columns = training_.layout->columns(),
                                       .outputs = objective_.outputs(),
                                       .parallel_trees = settings_.parallel_trees}));
  if (memory.start.base() != ChecksumOfBase()) {
    return FailedPrecondition(
               "the model that this training goes on from (USING) is not the one of its checkpoint")
        .Hint("empty the folder of the checkpoints, or name another: the training begins anew");
  }
  cuts_ = std::move(memory.cuts);
  grown_ = std::move(memory.rounds);
  start_ = std::move(memory.start);
  return rows_.GoOn(*start_, cuts_.get());
}

uint64_t Learner::ChecksumOfBase() const {
  return training_.base != nullptr ? ChecksumOf(training_.base->bytes) : 0;
}

void Learner::RememberStart(const std::string& base_score) {
  if (!training_.memory.remember || start_.has_value()) {
    return;
  }
  ForestStart start;
  rows_.Describe(&start);
  start.set_cuts(cuts_->Write());
  start.set_base_score(base_score);
  start.set_base(ChecksumOfBase());
  training_.memory.remember(start.SerializeAsString());
}

Status Learner::ReadRows() {
  if (!training_.memory.remembered.empty()) {
    return GoOn();
  }
  std::vector<size_t> categories;
  for (const ColumnLayout::Slot& slot : training_.layout->slots()) {
    if (!slot.expanded && !slot.ordered) {
      categories.push_back(slot.column);
    }
  }
  {  // Counts of many columns take more than bins: they must be gone when rows are binned.
    ASSIGN_OR_RETURN(const std::vector<ValueCounts> counts, rows_.Count());
    cuts_ = std::make_unique<CutPoints>(counts, settings_.most_bins, categories);
  }
  RETURN_IF_ERROR(rows_.Bin(cuts_.get()));
  return rows_.held_out() != nullptr || parameters_.early_stopping_rounds == 0
             ? OkStatus()
             : InvalidArgument("train.early_stopping_rounds needs validation rows")
                   .Hint("say validation.select, or split.kind='random'");
}

Result<std::string> Learner::BestBaseScore() {
  const GradientRange range = rows_.MeasureLabels();
  if (range.hessian == 0) {
    return InvalidArgument("nothing can be learnt: every row weighs 0");
  }
  float score = settings_.base_score.value_or(0.5F);
  if (!settings_.base_score.has_value() && objective_.ToMean(0).has_value()) {
    const GradientScale scale(range);
    const GradientSum sum = rows_.SumLabels(scale);
    score = static_cast<float>(
        objective_.BaseScore(scale.gradient(sum.gradient) / scale.hessian(sum.hessian)));
  }
  return fmt::format("{}", score);  // XGBoost reads no more digits than a float's
}

Status Learner::StartForest() {
  const size_t columns = training_.layout->columns(), outputs = objective_.outputs();
  if (training_.base != nullptr) {
    ASSIGN_OR_RETURN(forest_, SavedForest::Read(training_.base->bytes, columns, outputs));
    if (forest_->parallel_trees() != settings_.parallel_trees) {
      return InvalidArgument(
          fmt::format("num_parallel_tree is {}, but the model that this training goes on from has "
                      "{} trees in a round",
                      settings_.parallel_trees, forest_->parallel_trees()));
    }
    RememberStart("");
    return OkStatus();
  }
  ASSIGN_OR_RETURN(const std::string score, start_.has_value()
                                                ? Result<std::string>(start_->base_score())
                                                : BestBaseScore());
  const std::optional<float> margin =
      objective_.Margin(static_cast<float>(ParseNumber(score).value_or(0)));
  if (!margin.has_value()) {
    return InvalidArgument(
        fmt::format("objective {} cannot begin with base_score {}", parameters_.objective, score));
  }
  forest_.emplace(score, columns, outputs, settings_.parallel_trees);
  rows_.StartFrom(*margin);
  if (rows_.held_out() != nullptr) {
    rows_.held_out()->StartFrom(*margin);
  }
  RememberStart(score);
  return OkStatus();
}

// `grown`: receives its splits, in their order.
Result<Tree> Learner::Grow(const GradientScale& scale, size_t output, GrownTree* grown) {
  const TreeRules& rules = settings_.rules;
  const uint64_t name = grown->name();
  TreeGrowth growth(*cuts_, training_.layout->sparse(), rules, scale,
                    ColumnSample(rules, name, cuts_->columns()), &threads_);
  ASSIGN_OR_RETURN(const GradientSum total, rows_.BeginTree(output, name));
  growth.Begin(total, rows_.rows());
  while (true) {
    ASSIGN_OR_RETURN(std::vector<Histogram> sums, rows_.Sum(growth.NodesToSum()));
    growth.Take(std::move(sums));
    const std::vector<RowShare::NodeSplit> splits = growth.NextSplits();
    if (splits.empty()) {
      return growth.Finish();
    }
    AddSplits(splits, grown);
    rows_.Split(splits);
  }
}

Status Learner::GrowRound() {
  ASSIGN_OR_RETURN(const std::vector<GradientRange> ranges, rows_.MeasureRange());
  for (const GradientRange& range : ranges) {
    if (!range.finite()) {
      return InvalidArgument(fmt::format("objective {}: the derivatives of label '{}' overflow",
                                         parameters_.objective, parameters_.label))
          .Hint("learn a label of a smaller magnitude, or use a smaller eta");
    }
  }
  rows_.BeginRound(ranges);
  uint64_t name = uint64_t{forest_->rounds()} * ranges.size() * settings_.parallel_trees;
  ForestRound round;
  for (size_t output = 0; output < ranges.size(); ++output) {
    for (size_t i = 0; i < settings_.parallel_trees; ++i) {
      GrownTree& grown = *round.add_trees();
      grown.set_output(static_cast<uint32_t>(output));
      grown.set_name(name++);
      ASSIGN_OR_RETURN(const Tree tree, Grow(GradientScale(ranges[output]), output, &grown));
      rows_.EndTree(tree);
      EndTree(tree, output);
      AddNodes(tree, &grown);
    }
  }
  if (training_.memory.remember) {
    training_.memory.remember(round.SerializeAsString());
  }
  return OkStatus();
}

void Learner::EndTree(const Tree& tree, size_t output) {
  if (rows_.held_out() != nullptr) {
    rows_.held_out()->AddTree(tree, output);
  }
  forest_->Add(tree, *cuts_, output);
}

void Learner::AddRound(const ForestRound& round) {
  for (const GrownTree& tree : round.trees()) {
    rows_.AddTree(tree);
    EndTree(FromProto(tree), tree.output());
  }
}

void Learner::AddMetrics(std::string_view of, RoundMetrics fresh, RoundMetrics* metrics) const {
  for (auto& [name, value] : fresh) {
    name = fmt::format("{}-{}", of, name);
  }
  if (parameters_.learns_scaled) {
    RestoreErrors(parameters_.label_scale.scale, &fresh);
  }
  metrics->insert(metrics->end(), fresh.begin(), fresh.end());
}

Status Learner::Evaluate(bool with_train, RoundMetrics* metrics) {
  std::erase_if(*metrics, [&](const auto& metric) {
    return with_train || !metric.first.starts_with("train-");
  });
  if (with_train) {
    ASSIGN_OR_RETURN(RoundMetrics fresh, rows_.Metrics(metrics_));
    AddMetrics("train", std::move(fresh), metrics);
  }
  if (rows_.held_out() == nullptr) {
    return OkStatus();
  }
  RoundMetrics fresh;
  for (const std::string& name : metrics_) {
    fresh.emplace_back(
        name, RoundMetric(name, settings_.objective, objective_, *rows_.held_out(), &threads_));
  }
  AddMetrics("validation", std::move(fresh), metrics);
  return OkStatus();
}

Status Learner::GrowRounds() {
  const size_t first = forest_->rounds();
  const auto interval = static_cast<int>(rows_.rows() / kRowsToldEveryRound) + 1;
  BestRound best(rows_.held_out() != nullptr ? parameters_.early_stopping_rounds : 0);
  RoundMetrics metrics;
  for (int i = 0; i < parameters_.rounds; ++i) {
    RETURN_IF_ERROR(CheckStop());
    const bool known = static_cast<size_t>(i) < grown_.size();
    if (known) {
      AddRound(grown_[static_cast<size_t>(i)]);
    } else {
      RETURN_IF_ERROR(GrowRound());
    }
    const bool told = (!known && i % interval == 0) || i + 1 == parameters_.rounds ||
                      training_.finish.stop_requested();
    if (told || parameters_.early_stopping_rounds > 0) {
      RETURN_IF_ERROR(Evaluate(told, &metrics));
    }
    GradientBoosting::Round round{
        .round = i + 1, .rounds = parameters_.rounds, .best = 0, .metrics = metrics};
    const bool enough = best.Note(i, round.metrics);
    round.best = best.round() ? *best.round() + 1 : 0;
    if (training_.progress) {
      training_.progress(round);
    }
    if (enough || training_.finish.stop_requested()) {
      break;
    }
  }
  if (best.round()) {
    forest_->KeepRounds(first + static_cast<size_t>(*best.round()) + 1);
  }
  return OkStatus();
}

Result<std::string> Learner::Run() {
  RETURN_IF_ERROR(ReadRows());
  RETURN_IF_ERROR(StartForest());
  RETURN_IF_ERROR(GrowRounds());
  const std::string name =
      parameters_.objective == "reg:linear" ? "reg:squarederror" : parameters_.objective;
  return forest_->Write(name, objective_.ToStore());
}

}  // namespace

bool Learns(const BoostingParameters& parameters) {
  const bool known = parameters.booster == BoostingParameters::Booster::kTree &&
                     !parameters.raw_values && Objective::Knows(parameters.objective);
  return known && std::all_of(parameters.settings.begin(), parameters.settings.end(),
                              [&](const auto& setting) {
                                return setting.first != "eval_metric" ||
                                       KnowsMetric(setting.second, parameters.raw_outputs);
                              });
}

Result<Trained> Train(const Training& training) {
  const BoostingParameters& parameters = *training.parameters;
  const Settings settings = SettingsOf(parameters);
  const std::unique_ptr<Objective> objective = Objective::Make(settings.objective);
  Threads threads(static_cast<size_t>(std::max(0, parameters.training_threads)));
  RowsHere rows(training, settings, *objective, &threads);
  ASSIGN_OR_RETURN(std::string bytes,
                   Learner(training, settings, *objective, &threads, &rows).Run());
  return Trained{std::move(bytes), rows.margins()};
}

Result<std::string> Train(const Training& training, const PassRun& run) {
  const BoostingParameters& parameters = *training.parameters;
  const Settings settings = SettingsOf(parameters);
  const std::unique_ptr<Objective> objective = Objective::Make(settings.objective);
  Threads threads(static_cast<size_t>(std::max(1, parameters.training_threads)));
  RowsOnWorkers rows(training, *objective, &threads, run);
  return Learner(training, settings, *objective, &threads, &rows).Run();
}

}  // namespace sluice::models::histogram
