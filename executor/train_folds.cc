#include "executor/train_folds.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "elastic/job/further_metrics.h"
#include "elastic/job/local_job.h"
#include "elastic/job/optimum_job.h"
#include "executor/fixed_schedule.h"
#include "executor/label_correction.h"
#include "executor/train_trees.h"
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

 private:
  std::vector<Metrics> epochs_;
};

Metrics Mean(const std::vector<Curve>& curves, size_t epoch) {
  Metrics mean = curves.front().After(epoch);
  for (size_t i = 0; i < mean.size(); ++i) {
    double sum = 0;
    for (const Curve& curve : curves) {
      const Metrics& own = curve.After(epoch);
      sum += i < own.size() ? own[i].second : 0;
    }
    mean[i].second = sum / static_cast<double>(curves.size());
  }
  return mean;
}

struct Best {
  size_t epoch = 1;
  Metrics metrics;
};

Best FindBest(const std::vector<Curve>& curves, const std::string& metric) {
  size_t last = 0;
  for (const Curve& curve : curves) {
    last = std::max(last, curve.epochs());
  }
  const bool higher = models::Metrics::HigherIsBetter(metric);
  std::optional<double> best_value;
  Best best;
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

bool ChoosesThreshold(const plan::TrainPlan& plan) {
  return plan.threshold() == "f1" || plan.threshold().starts_with("cost:");
}

// Progress of folds + 1 trainings, which take about equally long, as one.
class Stages {
 public:
  Stages(const elastic::ProgressCallback& progress, uint32_t folds)
      : progress_(progress), count_(folds + 1) {}

  void Report(uint32_t stage, elastic::Progress now) {
    const TimePoint time = clock_.Now();
    if (SecondsBetween(told_, time) < 1) {
      return;
    }
    told_ = time;
    const double seconds = SecondsBetween(started_, time);
    now.seconds_left += stage > 0 ? seconds / stage * (count_ - stage - 1)
                                  : (seconds + now.seconds_left) * (count_ - 1);
    progress_(now);
  }

 private:
  const elastic::ProgressCallback& progress_;
  const uint32_t count_;
  const SteadyClock clock_;
  const TimePoint started_ = clock_.Now();
  TimePoint told_ = started_;
};

plan::TrainPlan WithoutFold(const plan::TrainPlan& whole, uint32_t fold) {
  plan::TrainPlan plan = whole;
  plan.set_folds(0);
  plan.mutable_split()->set_kind(plan::Split::RANDOM);
  plan.mutable_split()->set_fold(fold);
  plan.mutable_split()->set_folds(whole.folds());
  return plan;
}

// From every row, scored by the model that was trained without the row's fold.
void JudgeByAll(const plan::TrainPlan& plan, ScoredRows all, elastic::TrainOutcome* outcome,
                std::optional<ScoredRows>* held_out) {
  outcome->validation_rows = static_cast<int64_t>(all.rows());
  if (all.rows() > 0) {
    models::Metrics metrics(plan.model(), all.outputs);
    metrics.Add(all.scores, all.labels, all.weights);
    outcome->metrics = metrics.Values(elastic::FurtherMetrics(plan));
    *held_out = std::move(all);
  }
}

}  // namespace

Result<elastic::TrainOutcome> TrainByFolds(const elastic::TrainingJob& job,
                                           std::optional<ScoredRows>* held_out) {
  const uint32_t folds = job.plan.folds();
  std::vector<Curve> curves;
  Stages stages(job.progress, folds);
  int64_t rows_read = 0;
  for (uint32_t fold = 0; fold < folds; ++fold) {
    const plan::TrainPlan plan = WithoutFold(job.plan, fold);
    Curve curve;
    ASSIGN_OR_RETURN(const elastic::TrainOutcome outcome,
                     elastic::TrainInProcess({.plan = plan,
                                              .source = job.source,
                                              .dataset = job.dataset,
                                              .progress =
                                                  [&](const elastic::Progress& now) {
                                                    curve.Note(now);
                                                    stages.Report(fold, now);
                                                  },
                                              .stop = job.stop,
                                              .profile = job.profile}));
    rows_read += outcome.rows_read;
    const bool several_classes = plan.model().features().label().classes_size() > 2;
    if (WantsCalibration(plan) || WantsCorrection(plan) || ChoosesThreshold(plan) ||
        several_classes) {
      ASSIGN_OR_RETURN(const ScoredRows scored,
                       ScoreValidation(plan, job.source, job.dataset, nullptr,
                                       models::SaveWeights(outcome.weights), job.stop));
      if (!held_out->has_value()) {
        held_out->emplace();
      }
      (*held_out)->Append(scored);
    }
    if (curve.epochs() > 0) {  // otherwise the fold has no rows
      curves.push_back(std::move(curve));
    }
  }
  const Best best = curves.empty() ? Best() : FindBest(curves, job.plan.early_stopping().metric());
  plan::TrainPlan plan = job.plan;
  plan.set_epochs(static_cast<uint32_t>(best.epoch));
  plan.clear_early_stopping();
  ASSIGN_OR_RETURN(elastic::TrainOutcome outcome,
                   elastic::TrainInProcess({.plan = plan,
                                            .source = job.source,
                                            .dataset = job.dataset,
                                            .progress = job.progress,
                                            .events = job.events,
                                            .stop = job.stop,
                                            .profile = job.profile}));
  outcome.metrics = best.metrics;
  if (held_out->has_value() && ChoosesThreshold(plan)) {
    JudgeDecisions(plan, **held_out, &outcome.metrics);
  }
  outcome.validation_rows = curves.empty() ? 0 : outcome.rows_per_epoch;
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
