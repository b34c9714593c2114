#include "executor/contest/candidate_trial.h"

#include <algorithm>
#include <cmath>

#include "base/guarded.h"
#include "base/median.h"
#include "catalog/dataset.pb.h"
#include "elastic/worker/feature_reader.h"
#include "elastic/worker/split.h"
#include "executor/contest/contest_clock.h"
#include "executor/contest/lane_clock.h"
#include "executor/in_process/fixed_schedule.h"
#include "executor/in_process/label_correction.h"
#include "executor/scoring/scorer.h"
#include "planner/plan.pb.h"

namespace sluice::executor {
namespace {

constexpr size_t kRowsPerRead = 4096;
// Two candidates are trained at a time (contest_lanes.h).
constexpr unsigned kProcessors = 1;

// Appends the model's scores of the validation rows to those of earlier folds.
Status Judge(const plan::TrainPlan& plan, const std::string& weights, const TrialRows& rows,
             const std::stop_token& stop, Judgement* judgement) {
  PhaseClock clock(Phase::kStart, rows.profile);
  models::ModelSpec spec = plan.model();
  spec.mutable_features()->mutable_label()->clear_class_weights();
  ASSIGN_OR_RETURN(const auto scorer, Scorer::Make(spec, weights));
  elastic::FeatureReader::Options options;
  options.clock = &clock;
  const bool apart = rows.validation != nullptr;
  if (!apart) {
    ASSIGN_OR_RETURN(options.split, elastic::SplitRule::Make(plan.split()));
  }
  const catalog::DatasetSpec& dataset = apart ? *rows.validation : rows.dataset;
  ASSIGN_OR_RETURN(const auto reader, elastic::FeatureReader::Make(rows.source, dataset,
                                                                   scorer->transform(), options));
  judgement->outputs = scorer->outputs();
  // Neighbouring rows are held out together: the fold's rows are runs of them, in order.
  const uint32_t together = std::max(plan.split().together(), 1U);
  const uint32_t first_run = judgement->runs.empty() ? 0 : judgement->runs.back() + 1;
  uint32_t judged = 0;
  const PhaseScope evaluating(&clock, Phase::kEvaluation);
  models::FeatureBatch batch;
  std::vector<double> scores;
  for (int shard = 0; shard < dataset.shards_size(); ++shard) {
    RETURN_IF_ERROR(reader->Open(elastic::ShardId(shard)));
    for (;;) {
      if (stop.stop_requested()) {
        return Cancelled("the training was cancelled");
      }
      ASSIGN_OR_RETURN(const bool more,
                       reader->Next(std::min(kRowsPerRead, scorer->rows_per_batch())));
      if (!more) {
        break;
      }
      batch.Clear();
      apart ? reader->AppendTraining(&batch) : reader->AppendValidation(&batch);
      if (batch.rows == 0) {
        continue;
      }
      RETURN_IF_ERROR(scorer->Score(batch, &scores));
      const auto append = [](const auto& from, auto* to) {
        to->insert(to->end(), from.begin(), from.end());
      };
      append(scores, &judgement->predictions);
      append(batch.OwnLabels(), &judgement->labels);
      append(batch.weights, &judgement->weights);
      for (size_t row = 0; row < batch.rows; ++row) {
        judgement->runs.push_back(first_run + judged++ / together);
      }
    }
  }
  return OkStatus();
}

Status TrainFold(const plan::TrainPlan& plan, const TrialRows& rows, const TrialLimits& limits,
                 const elastic::ProgressCallback& progress, Trial* trial) {
  const SoftLimit limit(limits.stop, limits.seconds, limits.must);
  const Status status = [&]() -> Status {
    ASSIGN_OR_RETURN(trial->trained, TrainOnce({.plan = plan,
                                                .source = rows.source,
                                                .dataset = rows.dataset,
                                                .validation = rows.validation,
                                                .base = rows.base,
                                                .progress = progress,
                                                .stop = limit.stop(),
                                                .finish = limit.finish(),
                                                .processors = kProcessors,
                                                .profile = rows.profile}));
    trial->cut_short = trial->cut_short || limit.finish().stop_requested();
    trial->rows_read += trial->trained.outcome.rows_read;
    return Judge(plan, trial->trained.weights, rows, limits.stop, &trial->judgement);
  }();
  return !status.ok() && limit.broken_off() && !limits.stop.stop_requested()
             ? ResourceExhausted("time ran out before it came to anything")
             : status;
}

Status TrainAndJudge(plan::TrainPlan plan, const plan::Contest& contest, const TrialRows& rows,
                     const TrialLimits& limits, const elastic::ProgressCallback& progress,
                     Trial* trial) {
  const LaneClock lane;
  const uint32_t folds = std::max(contest.folds(), 1U);
  // With few rows, early stopping picks the best epoch partly by chance, which flatters models
  // whose metric fluctuates most. So each fold's rows judge a model trained for as many epochs as
  // were best on the other folds.
  const bool again = folds > 1 && plan.early_stopping().patience() > 0;
  uint32_t trainings_left = again ? 2 * folds : folds;
  const auto train = [&](const plan::TrainPlan& fold) {
    TrialLimits part = limits;
    part.seconds =
        std::max(0.0, limits.seconds - lane.elapsed()) / static_cast<double>(trainings_left--);
    return TrainFold(fold, rows, part, progress, trial);
  };
  std::vector<uint32_t> best;
  for (uint32_t fold = 0; fold < folds; ++fold) {
    plan.mutable_split()->set_fold(fold);
    RETURN_IF_ERROR(train(plan));
    best.push_back(BestEpoch(trial->trained.outcome));
  }
  trial->best_epoch = MedianOf(best);
  if (again) {
    trial->judgement = {};
    const elastic::TrainOutcome like = trial->trained.outcome;
    for (uint32_t fold = 0; fold < folds; ++fold) {
      std::vector<uint32_t> others = best;
      others.erase(others.begin() + fold);
      plan::TrainPlan fixed = plan;
      fixed.mutable_split()->set_fold(fold);
      FixLength(MedianOf(std::move(others)), like, &fixed);
      RETURN_IF_ERROR(train(fixed));
    }
    trial->trained.outcome.rate_cuts = like.rate_cuts;
  }
  if (trial->judgement.labels.empty()) {
    return InvalidArgument("there are no validation rows to judge by");
  }
  if (WantsCorrection(plan)) {
    Judgement& judged = trial->judgement;
    trial->correction = FindCorrection(plan, judged.predictions, judged.labels, judged.weights);
    for (double& prediction : judged.predictions) {
      prediction *= trial->correction;
    }
  }
  trial->value = MetricsOf(plan.model(), trial->judgement).Value(contest.metric());
  return std::isfinite(trial->value)
             ? OkStatus()
             : InvalidArgument("its " + contest.metric() + " on the validation rows is no number");
}

}  // namespace

catalog::DatasetSpec FirstRows(const catalog::DatasetSpec& dataset, int64_t rows) {
  catalog::DatasetSpec sample = dataset;
  int shards = 0;
  int64_t sum = 0;
  while (shards < dataset.shards_size() && sum < rows) {
    sum += dataset.shards(shards++).estimated_rows();
  }
  if (shards < dataset.shards_size()) {
    sample.mutable_shards()->DeleteSubrange(shards, dataset.shards_size() - shards);
    sample.set_estimated_rows(sum);
    sample.set_counted_rows(0);
  }
  return sample;
}

models::Metrics MetricsOf(const models::ModelSpec& model, const Judgement& judgement) {
  models::Metrics metrics(model, judgement.outputs);
  metrics.Add(judgement.predictions, judgement.labels, judgement.weights);
  return metrics;
}

Trial RunTrial(const plan::Candidate& candidate, const plan::Contest& contest, double share,
               const TrialRows& rows, const TrialLimits& limits,
               const elastic::ProgressCallback& progress) {
  const LaneClock lane;
  plan::TrainPlan plan = candidate.plan();
  if (share < 1) {
    Shorten(share, &plan);
  }
  Trial trial;
  trial.tried = true;
  trial.status = Guarded("training a candidate", [&] {
    return TrainAndJudge(std::move(plan), contest, rows, limits, progress, &trial);
  });
  trial.seconds = lane.elapsed();
  return trial;
}

Result<Trained> TrainOnAll(const plan::Candidate& candidate, const Trial& trial,
                           const TrialRows& rows, std::stop_token stop,
                           const elastic::ProgressCallback& progress) {
  plan::TrainPlan plan = candidate.plan();
  plan.clear_split();
  FixLength(trial.best_epoch, trial.trained.outcome, &plan);
  return TrainOnce({.plan = plan,
                    .source = rows.source,
                    .dataset = rows.dataset,
                    .base = rows.base,
                    .progress = progress,
                    .stop = std::move(stop),
                    .processors = kProcessors,
                    .profile = rows.profile});
}

}  // namespace sluice::executor
