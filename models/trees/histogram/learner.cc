#include "models/trees/histogram/learner.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "base/value.h"
#include "models/features/cell_format.h"
#include "models/trees/histogram/round_metrics.h"
#include "models/trees/histogram/row_share.h"
#include "models/trees/histogram/saved_forest.h"
#include "models/trees/histogram/settings.h"
#include "models/trees/histogram/tree_growth.h"

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
  explicit Learner(const Training& training)
      : training_(training),
        parameters_(*training.parameters),
        settings_(SettingsOf(parameters_)),
        objective_(Objective::Make(settings_.objective)),
        threads_(static_cast<size_t>(std::max(0, parameters_.training_threads))),
        metrics_(MetricsOf(settings_, *objective_)) {}

  Result<Trained> Run();

 private:
  Status ReadTraining();
  Status ReadValidation();
  // The first pass: how often each number occurs, and how many rows there are.
  Result<std::vector<ValueCounts>> Count(RowPieces* pieces, size_t* rows);
  // The second pass.
  Result<std::unique_ptr<RowShare>> Bin(RowPieces* pieces, size_t rows);
  Status CheckLabels(const std::vector<float>& labels) const;
  Status StartForest();
  Result<std::string> BestBaseScore() const;

  Status GrowRounds();
  Status GrowRound();
  Result<Tree> Grow(const GradientScale& scale, size_t output, uint64_t name);
  Status CheckStop() const {
    return training_.stop.stop_requested() ? Cancelled("the training was cancelled") : OkStatus();
  }
  // Replaces the metrics by those of now; those of the training rows only `with_train`.
  void Evaluate(bool with_train, RoundMetrics* metrics);
  void AddMetrics(std::string_view of, const RowShare& share, RoundMetrics* metrics);

  const Training& training_;
  const BoostingParameters& parameters_;
  const Settings settings_;
  const std::unique_ptr<Objective> objective_;
  Threads threads_;
  const std::vector<std::string> metrics_;
  std::unique_ptr<CutPoints> cuts_;
  std::unique_ptr<RowShare> rows_, held_out_;
  std::optional<SavedForest> forest_;
};

Status Learner::CheckLabels(const std::vector<float>& labels) const {
  for (const float label : labels) {
    const std::string_view refusal =
        std::isfinite(label) ? objective_->Refusal(label) : "must be within the range of floats";
    if (!refusal.empty()) {
      return InvalidArgument(fmt::format("objective {}: label '{}' {}, and one is {}",
                                         parameters_.objective, parameters_.label, refusal,
                                         FormatDouble(static_cast<double>(label))));
    }
  }
  return OkStatus();
}

Result<std::vector<ValueCounts>> Learner::Count(RowPieces* pieces, size_t* rows) {
  const size_t columns = training_.layout->columns();
  std::vector<ValueCounts> counts(columns);
  while (true) {
    ASSIGN_OR_RETURN(const bool more, pieces->Next(RowPieces::Left::kRows));
    if (!more) {
      return counts;
    }
    RETURN_IF_ERROR(CheckLabels(pieces->labels()));
    const RowMatrix& matrix = pieces->matrix();
    *rows += matrix.rows();
    if (training_.layout->sparse()) {
      for (size_t i = 0; i < matrix.numbers(); ++i) {
        counts[matrix.columns()[i]].Add(matrix.values()[i]);
      }
      continue;
    }
    threads_.Run(columns, [&](size_t column, size_t) {
      for (size_t i = column; i < matrix.numbers(); i += columns) {
        if (!std::isnan(matrix.values()[i])) {
          counts[column].Add(matrix.values()[i]);
        }
      }
    });
  }
}

Result<std::unique_ptr<RowShare>> Learner::Bin(RowPieces* pieces, size_t rows) {
  auto share = std::make_unique<RowShare>(cuts_.get(), training_.layout->sparse(), objective_.get(),
                                          &threads_);
  share->Reserve(rows);
  std::vector<float> margins;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, pieces->Next(RowPieces::Left::kNothing));
    if (!more) {
      return share;
    }
    if (training_.base != nullptr) {
      RETURN_IF_ERROR(training_.base->margins(pieces->matrix(), &margins));
    }
    share->Append(pieces->matrix(), pieces->labels(), pieces->weights(), margins);
  }
}

Status Learner::ReadTraining() {
  RowPieces pieces(*training_.train, *training_.layout, parameters_, training_.stop);
  RETURN_IF_ERROR(pieces.RequireRows("to train on"));
  size_t rows = 0;
  std::vector<size_t> categories;
  for (const ColumnLayout::Slot& slot : training_.layout->slots()) {
    if (!slot.expanded && !slot.ordered) {
      categories.push_back(slot.column);
    }
  }
  {  // Counts of many columns take more than bins: they must be gone when rows are binned.
    ASSIGN_OR_RETURN(const std::vector<ValueCounts> counts, Count(&pieces, &rows));
    cuts_ = std::make_unique<CutPoints>(counts, settings_.most_bins, categories);
  }
  pieces.Restart();
  ASSIGN_OR_RETURN(rows_, Bin(&pieces, rows));
  return OkStatus();
}

Status Learner::ReadValidation() {
  if (!training_.validation->next) {
    return parameters_.early_stopping_rounds == 0
               ? OkStatus()
               : InvalidArgument("train.early_stopping_rounds needs validation rows")
                     .Hint("say validation.select, or split.kind='random'");
  }
  RowPieces pieces(*training_.validation, *training_.layout, parameters_, training_.stop);
  RETURN_IF_ERROR(pieces.RequireRows("to validate on"));
  ASSIGN_OR_RETURN(held_out_, Bin(&pieces, 0));
  return CheckLabels({held_out_->labels().begin(), held_out_->labels().end()});
}

Result<std::string> Learner::BestBaseScore() const {
  const GradientRange range = rows_->MeasureLabels();
  if (range.hessian == 0) {
    return InvalidArgument("nothing can be learnt: every row weighs 0");
  }
  float score = settings_.base_score.value_or(0.5F);
  if (!settings_.base_score.has_value() && objective_->ToMean(0).has_value()) {
    const GradientScale scale(range);
    const GradientSum sum = rows_->SumLabels(scale);
    score = static_cast<float>(
        objective_->BaseScore(scale.gradient(sum.gradient) / scale.hessian(sum.hessian)));
  }
  return fmt::format("{}", score);  // XGBoost reads no more digits than a float's
}

Status Learner::StartForest() {
  const size_t columns = training_.layout->columns(), outputs = objective_->outputs();
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
  ASSIGN_OR_RETURN(const std::string score, BestBaseScore());
  const std::optional<float> margin =
      objective_->Margin(static_cast<float>(ParseNumber(score).value_or(0)));
  if (!margin.has_value()) {
    return InvalidArgument(
        fmt::format("objective {} cannot begin with base_score {}", parameters_.objective, score));
  }
  forest_.emplace(score, columns, outputs, settings_.parallel_trees);
  rows_->StartFrom(*margin);
  if (held_out_ != nullptr) {
    held_out_->StartFrom(*margin);
  }
  return OkStatus();
}

Result<Tree> Learner::Grow(const GradientScale& scale, size_t output, uint64_t name) {
  const TreeRules& rules = settings_.rules;
  TreeGrowth growth(*cuts_, training_.layout->sparse(), rules, scale,
                    ColumnSample(rules, name, cuts_->columns()), &threads_);
  growth.Begin(rows_->BeginTree(output, RowSample(rules, name)), rows_->rows());
  while (true) {
    RETURN_IF_ERROR(CheckStop());
    std::vector<Histogram> sums(growth.NodesToSum().size());
    std::vector<Histogram*> to;
    for (Histogram& sum : sums) {
      sum.resize(cuts_->all_bins());
      to.push_back(&sum);
    }
    rows_->AddHistograms(growth.NodesToSum(), to);
    growth.Take(std::move(sums));
    const std::vector<RowShare::NodeSplit> splits = growth.NextSplits();
    if (splits.empty()) {
      return growth.Finish();
    }
    rows_->Split(splits);
  }
}

Status Learner::GrowRound() {
  std::vector<GradientScale> scales;
  for (const GradientRange& range : rows_->MeasureRange()) {
    if (!range.finite()) {
      return InvalidArgument(fmt::format("objective {}: the derivatives of label '{}' overflow",
                                         parameters_.objective, parameters_.label))
          .Hint("learn a label of a smaller magnitude, or use a smaller eta");
    }
    scales.emplace_back(range);
  }
  rows_->BeginRound(scales);
  const uint64_t round = forest_->rounds();
  uint64_t name = round * scales.size() * settings_.parallel_trees;
  for (size_t output = 0; output < scales.size(); ++output) {
    for (size_t i = 0; i < settings_.parallel_trees; ++i) {
      ASSIGN_OR_RETURN(const Tree tree, Grow(scales[output], output, name++));
      rows_->EndTree(tree);
      if (held_out_ != nullptr) {
        held_out_->AddTree(tree, output);
      }
      forest_->Add(tree, *cuts_, output);
    }
  }
  return OkStatus();
}

void Learner::AddMetrics(std::string_view of, const RowShare& share, RoundMetrics* metrics) {
  RoundMetrics fresh;
  for (const std::string& name : metrics_) {
    fresh.emplace_back(fmt::format("{}-{}", of, name),
                       RoundMetric(name, settings_.objective, *objective_, share, &threads_));
  }
  if (parameters_.learns_scaled) {
    RestoreErrors(parameters_.label_scale.scale, &fresh);
  }
  metrics->insert(metrics->end(), fresh.begin(), fresh.end());
}

void Learner::Evaluate(bool with_train, RoundMetrics* metrics) {
  std::erase_if(*metrics, [&](const auto& metric) {
    return with_train || !metric.first.starts_with("train-");
  });
  if (with_train) {
    AddMetrics("train", *rows_, metrics);
  }
  if (held_out_ != nullptr) {
    AddMetrics("validation", *held_out_, metrics);
  }
}

Status Learner::GrowRounds() {
  const size_t first = forest_->rounds();
  const auto interval = static_cast<int>(rows_->rows() / kRowsToldEveryRound) + 1;
  BestRound best(held_out_ != nullptr ? parameters_.early_stopping_rounds : 0);
  RoundMetrics metrics;
  for (int i = 0; i < parameters_.rounds; ++i) {
    RETURN_IF_ERROR(CheckStop());
    RETURN_IF_ERROR(GrowRound());
    const bool told =
        i % interval == 0 || i + 1 == parameters_.rounds || training_.finish.stop_requested();
    if (told || parameters_.early_stopping_rounds > 0) {
      Evaluate(told, &metrics);
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

Result<Trained> Learner::Run() {
  RETURN_IF_ERROR(ReadTraining());
  RETURN_IF_ERROR(ReadValidation());
  RETURN_IF_ERROR(StartForest());
  RETURN_IF_ERROR(GrowRounds());
  const std::string name =
      parameters_.objective == "reg:linear" ? "reg:squarederror" : parameters_.objective;
  return Trained{forest_->Write(name, objective_->ToStore()),
                 {rows_->margins().begin(), rows_->margins().end()}};
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
  return Learner(training).Run();
}

}  // namespace sluice::models::histogram
