#include "executor/in_process/train_folds.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/median.h"
#include "elastic/job/further_metrics.h"
#include "elastic/job/local_job.h"
#include "elastic/job/optimum_job.h"
#include "executor/in_process/fixed_schedule.h"
#include "executor/in_process/label_correction.h"
#include "executor/in_process/train_trees.h"
#include "executor/in_process/training_stages.h"
#include "executor/in_process/weight_decay.h"
#include "models/metrics/metric.h"
#include "planner/plan.pb.h"

namespace sluice::executor {
namespace {

using Metrics = std::vector<std::pair<std::string, double>>;

// A fold's metrics after each epoch. It stops when nothing has improved for long; for epochs after
// that, the last one's metrics count.
class Curve {
 public:
  void Note(const elastic::Progress& progress) {
    const size_t epoch = progress.epoch.value();
    if (epoch > 0 && !progress.metrics.empty()) {
      epochs_.resize(std::max(epochs_.size(), epoch));
      epochs_[epoch - 1] = progress.metrics;
    }
  }
  size_t epochs() const { return epochs_.size(); }
  const Metrics& After(size_t epoch) const { return epochs_[std::min(epoch, epochs_.size()) - 1]; }
  // Whether its rows determine the metric: those of one class have no AUC.
  bool Has(size_t metric) const {
    return std::any_of(epochs_.begin(), epochs_.end(), [metric](const Metrics& metrics) {
      return metric < metrics.size() && !std::isnan(metrics[metric].second);
    });
  }

 private:
  std::vector<Metrics> epochs_;
};

// Of each metric over the folds that have it.
Metrics Mean(const std::vector<Curve>& curves, size_t epoch) {
  Metrics mean = curves.front().After(epoch);
  for (size_t i = 0; i < mean.size(); ++i) {
    double sum = 0, folds = 0;
    for (const Curve& curve : curves) {
      const Metrics& own = curve.After(epoch);
      if (i < own.size() && curve.Has(i)) {
        sum += own[i].second;
        folds += 1;
      }
    }
    mean[i].second = sum / folds;  // NaN: no fold has it
  }
  return mean;
}

struct Best {
  size_t epoch = 1;
  Metrics metrics;
};

// The last epoch if no fold has the metric.
Best FindBest(const std::vector<Curve>& curves, const std::string& metric) {
  size_t last = 0;
  for (const Curve& curve : curves) {
    last = std::max(last, curve.epochs());
  }
  const bool higher = models::Metrics::HigherIsBetter(metric);
  std::optional<double> best_value;
  Best best{last, Mean(curves, last)};
  for (size_t epoch = 1; epoch <= last; ++epoch) {
    Metrics mean = Mean(curves, epoch);
    const auto found = std::find_if(mean.begin(), mean.end(),
                                    [&](const auto& one) { return one.first == metric; });
    if (found == mean.end() || std::isnan(found->second)) {
      continue;
    }
    const double value = higher ? -found->second : found->second;
    if (!best_value.has_value() || value < *best_value) {
      best_value = value;
      best = {epoch, std::move(mean)};
    }
  }
  return best;
}

bool HasClasses(const plan::TrainPlan& plan) {
  const models::Task task = models::TaskOf(plan.model());
  return task == models::Task::kBinary || task == models::Task::kMulticlass;
}

plan::TrainPlan WithoutFold(const plan::TrainPlan& whole, uint32_t fold) {
  plan::TrainPlan plan = whole;
  plan.set_folds(0);
  plan.mutable_split()->set_kind(plan::Split::RANDOM);
  plan.mutable_split()->set_fold(fold);
  plan.mutable_split()->set_folds(whole.folds());
  return plan;
}

// A training without each fold.
struct FoldRun {
  double weight_decay = 0;
  std::vector<Curve> curves;  // of the folds that have rows
  Best best;
  std::optional<ScoredRows> held_out;
  int64_t rows_read = 0;
  bool given_up = false;
};

double LossAt(const Metrics& metrics, const std::string& metric) {
  for (const auto& [name, value] : metrics) {
    if (name == metric) {
      return models::Metrics::HigherIsBetter(metric) ? -value : value;
    }
  }
  return std::numeric_limits<double>::infinity();
}

// Less is better.
double ValueOf(const FoldRun& run, const std::string& metric) {
  return LossAt(run.best.metrics, metric);
}

// By how much each fold's loss is less than in the other run, each run at its best epoch.
std::vector<double> GainsOver(const FoldRun& other, const FoldRun& run, const std::string& metric) {
  std::vector<double> gains;
  for (size_t i = 0; i < std::min(run.curves.size(), other.curves.size()); ++i) {
    gains.push_back(LossAt(other.curves[i].After(other.best.epoch), metric) -
                    LossAt(run.curves[i].After(run.best.epoch), metric));
  }
  return gains;
}

// Whether its losses are less than those of the other run by more than chance.
bool IsBetter(const FoldRun& run, const FoldRun& other, const std::string& metric) {
  const std::vector<double> gains = GainsOver(other, run, metric);
  const auto n = static_cast<double>(gains.size());
  if (run.given_up || gains.size() < 2) {
    return false;
  }
  const double sum = std::accumulate(gains.begin(), gains.end(), 0.0);
  const double squares = std::inner_product(gains.begin(), gains.end(), gains.begin(), 0.0);
  const double variance = std::max(0.0, (squares - sum * sum / n) / (n - 1));
  return sum / n > std::sqrt(variance / n);  // NaN: no
}

// Two folds that both got worse say enough.
bool IsHopeless(const FoldRun& run, const FoldRun& other, const std::string& metric) {
  constexpr size_t kFoldsThatTell = 2;
  if (run.curves.size() != kFoldsThatTell) {
    return false;
  }
  const std::vector<double> gains = GainsOver(other, run, metric);
  return std::all_of(gains.begin(), gains.end(), [](double gain) { return !(gain > 0); });
}

// `first`: the run to be better than; null: there is none.
Result<FoldRun> RunFolds(const elastic::TrainingJob& job, double weight_decay, const FoldRun* first,
                         TrainingStages* stages) {
  const std::string& metric = job.plan.early_stopping().metric();
  FoldRun run;
  run.weight_decay = weight_decay;
  for (uint32_t fold = 0; fold < job.plan.folds() && !run.given_up; ++fold) {
    plan::TrainPlan plan = WithoutFold(job.plan, fold);
    UseWeightDecay(weight_decay, &plan);
    Curve curve;
    ASSIGN_OR_RETURN(const elastic::TrainOutcome outcome,
                     elastic::TrainInProcess({.plan = plan,
                                              .source = job.source,
                                              .dataset = job.dataset,
                                              .base = job.base,
                                              .progress =
                                                  [&](const elastic::Progress& now) {
                                                    curve.Note(now);
                                                    stages->Report(now);
                                                  },
                                              .stop = job.stop,
                                              .profile = job.profile}));
    stages->Next();
    run.rows_read += outcome.rows_read;
    if (HasClasses(plan) || WantsCorrection(plan)) {
      ASSIGN_OR_RETURN(const ScoredRows scored,
                       ScoreValidation(plan, job.source, job.dataset, nullptr,
                                       models::SaveWeights(outcome.weights), job.stop));
      if (!run.held_out.has_value()) {
        run.held_out.emplace();
      }
      run.held_out->Append(scored);
    }
    if (curve.epochs() > 0) {  // otherwise the fold has no rows
      run.curves.push_back(std::move(curve));
      run.best = FindBest(run.curves, metric);
    }
    run.given_up = first != nullptr && IsHopeless(run, *first, metric);
  }
  return run;
}

std::string WhyDecays(const std::vector<FoldRun>& runs, size_t best, const std::string& metric) {
  std::vector<std::string> said;
  for (const FoldRun& run : runs) {
    const std::string with =
        run.weight_decay == 0 ? "none" : fmt::format("{:.6g}", run.weight_decay);
    said.push_back(run.given_up ? fmt::format("{} was given up", with)
                                : fmt::format("{} {} {:.6g}", with, metric, ValueOf(run, metric)));
  }
  const std::string chosen =
      best == 0 ? "no weight decay"
                : fmt::format("a weight decay of {:.6g} (AdamW)", runs[best].weight_decay);
  return fmt::format("the network is trained with {}: over {} folds, {}", chosen,
                     runs.front().curves.size(), fmt::join(said, ", "));
}

Metrics PooledMetrics(const plan::TrainPlan& plan, const ScoredRows& rows) {
  models::Metrics metrics(plan.model(), rows.outputs);
  metrics.Add(rows.scores, rows.labels, rows.weights);
  return metrics.Values(elastic::FurtherMetrics(plan));
}

// Those that the rows' scores determine: the loss of a user's own is not among them.
void ReplaceMetrics(const Metrics& newer, Metrics* metrics) {
  for (auto& [name, value] : *metrics) {
    for (const auto& [newer_name, newer_value] : newer) {
      if (name == newer_name && !std::isnan(newer_value)) {
        value = newer_value;
      }
    }
  }
}

// From every row, scored by the model that was trained without the row's fold.
void JudgeByAll(const plan::TrainPlan& plan, ScoredRows all, elastic::TrainOutcome* outcome,
                std::optional<ScoredRows>* held_out) {
  outcome->validation_rows = static_cast<int64_t>(all.rows());
  if (all.rows() > 0) {
    outcome->metrics = PooledMetrics(plan, all);
    *held_out = std::move(all);
  }
}

}  // namespace

Result<elastic::TrainOutcome> TrainByFolds(const elastic::TrainingJob& job,
                                           std::optional<ScoredRows>* held_out,
                                           FoldChoice* choice) {
  const std::string& metric = job.plan.early_stopping().metric();
  std::vector<double> decays = {0};
  decays.insert(decays.end(), job.plan.weight_decays().begin(), job.plan.weight_decays().end());
  TrainingStages stages(job.progress, static_cast<uint32_t>(decays.size()) * job.plan.folds() + 1);
  std::vector<FoldRun> runs;
  size_t best = 0;
  int64_t rows_read = 0;
  for (const double decay : decays) {
    const FoldRun* first = runs.empty() ? nullptr : &runs.front();
    ASSIGN_OR_RETURN(FoldRun run, RunFolds(job, decay, first, &stages));
    rows_read += run.rows_read;
    if (first != nullptr && IsBetter(run, runs.front(), metric) &&
        (best == 0 || ValueOf(run, metric) < ValueOf(runs[best], metric))) {
      best = runs.size();
    }
    runs.push_back(std::move(run));
  }
  if (decays.size() > 1 && !runs.front().curves.empty()) {
    choice->weight_decay = decays[best];
    choice->why = WhyDecays(runs, best, metric);
  }
  FoldRun& chosen = runs[best];
  *held_out = std::move(chosen.held_out);
  plan::TrainPlan plan = job.plan;
  UseWeightDecay(decays[best], &plan);
  plan.set_epochs(static_cast<uint32_t>(chosen.best.epoch));
  plan.clear_early_stopping();
  ASSIGN_OR_RETURN(elastic::TrainOutcome outcome,
                   elastic::TrainInProcess({.plan = plan,
                                            .source = job.source,
                                            .dataset = job.dataset,
                                            .base = job.base,
                                            .progress = job.progress,
                                            .events = job.events,
                                            .stop = job.stop,
                                            .profile = job.profile}));
  outcome.metrics = chosen.best.metrics;
  if (HasClasses(plan) && held_out->has_value() && (*held_out)->rows() > 0) {
    // A fold may lack a class, without which many metrics are undefined or mislead.
    ReplaceMetrics(PooledMetrics(plan, **held_out), &outcome.metrics);
  }
  outcome.validation_rows = chosen.curves.empty() ? 0 : outcome.rows_per_epoch;
  outcome.rows_read += rows_read;
  return outcome;
}

Result<elastic::TrainOutcome> TrainOptimumByFolds(const elastic::TrainingJob& job,
                                                  std::optional<ScoredRows>* held_out) {
  elastic::HeldOutScores rows;
  ASSIGN_OR_RETURN(elastic::TrainOutcome outcome, elastic::TrainToOptimumByFolds(job, &rows));
  JudgeByAll(
      job.plan,
      {rows.outputs, std::move(rows.scores), std::move(rows.labels), std::move(rows.weights)},
      &outcome, held_out);
  return outcome;
}

Result<elastic::TrainOutcome> TrainTreesByFolds(const elastic::TrainingJob& job,
                                                std::string* weights,
                                                std::optional<ScoredRows>* held_out) {
  ScoredRows all;
  std::vector<uint32_t> best;
  int64_t rows_read = 0;
  for (uint32_t fold = 0; fold < job.plan.folds(); ++fold) {
    const plan::TrainPlan plan = WithoutFold(job.plan, fold);
    std::string own;
    ASSIGN_OR_RETURN(const elastic::TrainOutcome outcome, TrainTrees({.plan = plan,
                                                                      .source = job.source,
                                                                      .dataset = job.dataset,
                                                                      .stop = job.stop,
                                                                      .profile = job.profile},
                                                                     "", &own));
    ASSIGN_OR_RETURN(const ScoredRows scored,
                     ScoreValidation(plan, job.source, job.dataset, nullptr, own, job.stop));
    all.Append(scored);
    best.push_back(BestEpoch(outcome));
    rows_read += outcome.rows_read;
  }
  plan::TrainPlan plan = job.plan;
  plan.set_folds(0);
  FixLength(MedianOf(std::move(best)), {}, &plan);
  ASSIGN_OR_RETURN(elastic::TrainOutcome outcome, TrainTrees({.plan = plan,
                                                              .source = job.source,
                                                              .dataset = job.dataset,
                                                              .progress = job.progress,
                                                              .events = job.events,
                                                              .stop = job.stop,
                                                              .profile = job.profile},
                                                             "", weights));
  outcome.rows_read += rows_read;
  JudgeByAll(plan, std::move(all), &outcome, held_out);
  return outcome;
}

}  // namespace sluice::executor
