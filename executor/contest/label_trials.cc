#include "executor/contest/label_trials.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "catalog/data_source.h"
#include "catalog/dataset.pb.h"
#include "executor/contest/candidate_trial.h"
#include "executor/contest/database_patience.h"
#include "executor/jobs/job_record.h"
#include "planner/plan.pb.h"

namespace sluice::executor {
namespace {

// Differences between scales show early, and on a part of the rows.
constexpr uint32_t kTrialEpochs = 10;
constexpr int64_t kTrialRows = 50'000;
constexpr uint32_t kFolds = 5;
constexpr double kFraction = 0.1;
constexpr double kNoLimitSeconds = 1e7;

// The plan of one trial: short, in this process.
plan::TrainPlan TrialPlan(const plan::TrainPlan& plan, const models::LabelPlan& label,
                          const plan::Contest& contest) {
  plan::TrainPlan trial = plan;
  trial.clear_label_trials();
  *trial.mutable_model()->mutable_features()->mutable_label() = label;
  *trial.mutable_split() = contest.split();
  trial.set_folds(0);
  trial.set_epochs(std::min(plan.epochs(), kTrialEpochs));
  trial.mutable_strategy()->set_kind(plan::Strategy::LOCAL);
  return trial;
}

// What the trials are judged by: the plan's own validation rows, else folds.
plan::Contest Judges(const plan::TrainPlan& plan) {
  plan::Contest contest;
  contest.set_metric("rmse");
  *contest.mutable_split() = plan.split();
  if (plan.split().kind() == plan::Split::NONE) {
    contest.mutable_split()->set_kind(plan::Split::RANDOM);
    contest.mutable_split()->set_fraction(kFraction);
    contest.mutable_split()->set_folds(kFolds);
    contest.set_folds(kFolds);
  }
  return contest;
}

// Whether the other's squared errors are smaller by more than chance.
bool IsBetter(const Judgement& other, const Judgement& own) {
  const size_t rows = own.labels.size();
  if (other.predictions.size() != own.predictions.size() || rows < 2) {
    return false;
  }
  const auto squared = [](const Judgement& judgement, size_t row) {
    const double off = judgement.predictions[row] - judgement.labels[row];
    return off * off;
  };
  double sum = 0, squares = 0;
  for (size_t row = 0; row < rows; ++row) {
    const double weight = own.weights.empty() ? 1 : static_cast<double>(own.weights[row]);
    const double gain = weight * (squared(own, row) - squared(other, row));
    sum += gain;
    squares += gain * gain;
  }
  const auto n = static_cast<double>(rows);
  const double variance = std::max(0.0, (squares - sum * sum / n) / (n - 1));
  return sum / n > std::sqrt(variance / n);
}

std::string_view ScaleName(const models::LabelPlan& label) {
  switch (label.curve()) {
    case models::LabelPlan::ROOT:
      return "as its square root";
    case models::LabelPlan::LOGARITHM:
      return "as its logarithm";
    default:
      return "as it is";
  }
}

}  // namespace

Result<plan::TrainPlan> ChooseLabelScale(const plan::TrainPlan& plan, catalog::DataSource& source,
                                         catalog::Catalog& catalog, JobRecord& job,
                                         const elastic::ProgressCallback& progress) {
  plan::TrainPlan here = plan;
  here.mutable_strategy()->set_kind(plan::Strategy::LOCAL);
  ASSIGN_OR_RETURN(const Datasets datasets, OpenDatasets(here, source));
  const catalog::DatasetSpec rows = FirstRows(datasets.train->spec(), kTrialRows);
  ASSIGN_OR_RETURN(const auto start, StartOf(plan, catalog));
  const TrialRows trial_rows{
      source, rows, datasets.validation == nullptr ? nullptr : &datasets.validation->spec(),
      &job.profile(), start.has_value() ? &*start : nullptr};
  const plan::Contest contest = Judges(plan);
  std::vector<models::LabelPlan> labels = {plan.model().features().label()};
  labels.insert(labels.end(), plan.label_trials().begin(), plan.label_trials().end());
  DatabasePatience patience(
      plan.database_patience_seconds(), job.stop_token(),
      [&job](const std::string& why) { job.Announce(elastic::kDatabaseWaits, why); });
  std::vector<Trial> trials;
  std::vector<std::string> said;
  size_t best = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    plan::Candidate candidate;
    *candidate.mutable_plan() = TrialPlan(plan, labels[i], contest);
    Trial trial;
    patience.Do([&] {
      trial = RunTrial(candidate, contest, 1, trial_rows, {job.stop_token(), kNoLimitSeconds, true},
                       progress);
      return trial.status;
    });
    if (job.stop_token().stop_requested()) {
      return Cancelled("the training was cancelled");
    }
    RETURN_IF_ERROR(patience.error());
    if (i == 0 && !trial.status.ok()) {
      return trial.status;
    }
    if (trial.status.ok()) {
      said.push_back(fmt::format("{} rmse {:.6g}", ScaleName(labels[i]), trial.value));
    }
    trials.push_back(std::move(trial));
    if (i > 0 && trials[i].status.ok() && trials[i].value < trials[best].value &&
        IsBetter(trials[i].judgement, trials[0].judgement)) {
      best = i;
    }
  }
  plan::TrainPlan chosen = plan;
  chosen.clear_label_trials();
  *chosen.mutable_model()->mutable_features()->mutable_label() = labels[best];
  const std::string why = fmt::format(
      "{} is learnt {}: short trainings came to {} on {} validation rows{}", labels[best].column(),
      ScaleName(labels[best]), fmt::join(said, ", "), trials[0].judgement.labels.size(),
      contest.folds() > 0 ? fmt::format(" of {} folds", contest.folds()) : "");
  chosen.add_told(why);
  job.Announce("label_scale", why);
  return chosen;
}

}  // namespace sluice::executor
