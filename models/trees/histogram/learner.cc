#include "models/trees/histogram/learner.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "base/value.h"
#include "models/features/cell_format.h"
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

  // `rows` are those of the learner.
  void RememberBy(RowsOnWorkers* rows, std::function<void(std::string)> remember) {
    on_workers_ = rows;
    remember_ = std::move(remember);
  }
  // Run begins with what another learner has remembered. Internal: it is damaged.
  Status GoOn(RowsOnWorkers* rows, const std::vector<std::string>& remembered);
  // The model in UBJSON.
  Result<std::string> Run();

 private:
  Status ReadRows();
  Status StartForest();
  Result<std::string> BestBaseScore();
  Status GrowRounds();
  Status GrowRound();
  // A round that was grown before.
  void AddRound(const ForestRound& round);
  void EndTree(const Tree& tree, size_t output);
  Result<Tree> Grow(const GradientScale& scale, size_t output, uint64_t name);
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
  RowsOnWorkers* on_workers_ = nullptr;  // if it remembers, or goes on
  std::function<void(std::string)> remember_;
  std::optional<ForestStart> start_;  // of the learner that it goes on from
  std::vector<ForestRound> grown_;    // by that one
};

Status Learner::GoOn(RowsOnWorkers* rows, const std::vector<std::string>& remembered) {
  on_workers_ = rows;
  const Status damaged = Internal("what an earlier training has remembered is damaged");
  start_.emplace();
  if (!start_->ParseFromString(remembered.front())) {
    return damaged;
  }
  ASSIGN_OR_RETURN(CutPoints cuts, CutPoints::Read(start_->cuts()));
  cuts_ = std::make_unique<CutPoints>(std::move(cuts));
  for (size_t i = 1; i < remembered.size(); ++i) {
    ForestRound& round = grown_.emplace_back();
    const bool parsed = round.ParseFromString(remembered[i]);
    if (!parsed ||
        round.trees_size() != static_cast<int>(objective_.outputs() * settings_.parallel_trees)) {
      return damaged;
    }
    for (const GrownTree& tree : round.trees()) {
      RETURN_IF_ERROR(CheckTree(tree, *cuts_));
      if (tree.values().empty() || tree.output() >= objective_.outputs()) {
        return damaged;
      }
    }
  }
  return OkStatus();
}

Status Learner::ReadRows() {
  if (start_.has_value()) {
    return on_workers_->GoOn(*start_, cuts_.get());
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
  if (remember_ && !start_.has_value()) {
    ForestStart start;
    on_workers_->Describe(&start);
    start.set_base_score(score);
    remember_(start.SerializeAsString());
  }
  return OkStatus();
}

Result<Tree> Learner::Grow(const GradientScale& scale, size_t output, uint64_t name) {
  const TreeRules& rules = settings_.rules;
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
  for (size_t output = 0; output < ranges.size(); ++output) {
    for (size_t i = 0; i < settings_.parallel_trees; ++i) {
      ASSIGN_OR_RETURN(const Tree tree, Grow(GradientScale(ranges[output]), output, name++));
      rows_.EndTree(tree);
      EndTree(tree, output);
    }
  }
  if (remember_) {
    remember_(on_workers_->TakeRound().SerializeAsString());
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
    on_workers_->AddTree(tree);
    EndTree(FromProto(tree), tree.output());
  }
  static_cast<void>(on_workers_->TakeRound());
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

Result<std::string> Train(const Training& training, const PassSearch& search) {
  const BoostingParameters& parameters = *training.parameters;
  const Settings settings = SettingsOf(parameters);
  const std::unique_ptr<Objective> objective = Objective::Make(settings.objective);
  Threads threads(static_cast<size_t>(std::max(1, parameters.training_threads)));
  RowsOnWorkers rows(training, *objective, &threads, search.run);
  Learner learner(training, settings, *objective, &threads, &rows);
  if (search.remember) {
    learner.RememberBy(&rows, search.remember);
  }
  if (!search.remembered.empty()) {
    RETURN_IF_ERROR(learner.GoOn(&rows, search.remembered));
  }
  return learner.Run();
}

}  // namespace sluice::models::histogram
