#include "executor/contest/contest.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <iterator>
#include <set>
#include <utility>

#include "base/clock.h"
#include "catalog/data_source.h"
#include "catalog/dataset.pb.h"
#include "elastic/job/further_metrics.h"
#include "executor/contest/candidate_trial.h"
#include "executor/contest/contest_choice.h"
#include "executor/contest/contest_clock.h"
#include "executor/contest/contest_description.h"
#include "executor/contest/contest_lanes.h"
#include "executor/contest/contest_record.h"
#include "executor/contest/contest_rungs.h"
#include "executor/contest/database_patience.h"
#include "executor/contest/selected_features.h"
#include "executor/jobs/job_record.h"
#include "models/blend/blend.h"
#include "planner/plan.pb.h"

namespace sluice::executor {
namespace {

// Share of a contest's time for trying candidates, if the winner is trained once more.
constexpr double kTryingShare = 0.7;
// Shares of that time after which the plain kinds, and then those on fewer columns, are to be done.
constexpr double kFirstShare = 0.5;
constexpr double kSelectiveShare = 0.75;
// A setting may take this multiple of its fair share of time; the last settings may then not be
// tried.
constexpr double kTimesFair = 3;
// Each kind's next model may take this share of the remaining time: the first kinds are those that
// learn most tables best, and one finished model is worth more than two unfinished ones.
constexpr double kShareOfFirst = 0.5;

class Contest {
 public:
  Contest(const plan::TrainPlan& plan, catalog::DataSource& source, const Datasets& datasets,
          JobRecord& job, const elastic::ProgressCallback& progress)
      : plan_(plan),
        contest_(plan.contest()),
        all_{source, datasets.train->spec(),
             datasets.validation == nullptr ? nullptr : &datasets.validation->spec(),
             &job.profile()},
        sample_(contest_.sample_rows() > 0 ? FirstRows(all_.dataset, contest_.sample_rows())
                                           : catalog::DatasetSpec()),
        job_(job),
        trials_(static_cast<size_t>(contest_.candidates_size())),
        clock_(contest_.seconds(), progress),
        patience_(plan.database_patience_seconds(), job.stop_token(),
                  [&job](const std::string& why) { job.Announce(elastic::kDatabaseWaits, why); }) {}

  Result<ContestResult> Run() {
    contest_.search() ? Search() : TryKinds();
    if (job_.stop_token().stop_requested() && !contest_.search()) {
      return Cancelled("the training was cancelled");
    }
    RETURN_IF_ERROR(patience_.error());
    const std::optional<size_t> best = Best(All());
    if (!best) {
      return job_.stop_token().stop_requested() ? Cancelled("the training was cancelled")
                                                : NoCandidateWon(contest_, trials_);
    }
    choice_ = Choose(plan_.model(), contest_, trials_, *best);
    return Finish();
  }

 private:
  TrialRows Rows() const {
    return {all_.source, contest_.sample_rows() > 0 ? sample_ : all_.dataset, all_.validation,
            all_.profile};
  }
  bool stopped() const { return job_.stop_token().stop_requested(); }
  // Nothing more is tried.
  bool over() const { return stopped() || patience_.ended(); }
  std::vector<size_t> All() const {
    std::vector<size_t> all(trials_.size());
    for (size_t i = 0; i < all.size(); ++i) {
      all[i] = i;
    }
    return all;
  }
  // The plan that is stored.
  plan::TrainPlan PlanOf(size_t i) const {
    plan::TrainPlan plan = candidate(i).plan();
    if (trials_[i].correction != 0) {
      plan.mutable_model()->mutable_features()->mutable_label()->set_correction(
          trials_[i].correction);
    }
    return plan;
  }
  const plan::Candidate& candidate(size_t i) const {
    return contest_.candidates(static_cast<int>(i));
  }
  std::optional<size_t> Best(const std::vector<size_t>& among) const {
    const std::vector<size_t> ordered = BestFirst(contest_, trials_, among);
    return ordered.empty() ? std::nullopt : std::optional(ordered.front());
  }

  // Tries one candidate, for `seconds` at most. With `must` it is never broken off before it has a
  // result.
  void Try(size_t i, double share, double seconds, bool must) {
    Trial trial;
    patience_.Do([&] {
      trial = RunTrial(candidate(i), contest_, share, Rows(), {job_.stop_token(), seconds, must},
                       clock_.Progress());
      return trial.status;
    });
    if (!over()) {  // report a candidate once, not after each rung
      const std::string line = DescribeTrial(contest_, i, trial, share);
      trials_[i].tried ? job_.Event("candidate", line) : job_.Announce("candidate", line);
    }
    // If a later rung fails, keep the result of the earlier one.
    if (trial.status.ok() || !trials_[i].tried) {
      trials_[i] = std::move(trial);
    }
  }

  // Networks use one processor; trees and linear models several.
  bool IsNetwork(size_t i) const {
    const std::string& kind = candidate(i).kind();
    return kind == "network" || kind == "wide_deep" || kind == "factorization";
  }
  // In two lanes (contest_lanes.h).
  void InLanes(const std::vector<size_t>& which, const std::function<void(const LaneTurn&)>& work) {
    std::vector<size_t> networks, others;
    for (const size_t i : which) {
      (IsNetwork(i) ? networks : others).push_back(i);
    }
    RunLanes(others, networks, work);
  }

  // Tries these candidates until `seconds` of the contest are over.
  void TryAll(const std::vector<size_t>& which, double share, double until) {
    const bool nothing_yet = !Best(All()).has_value();
    InLanes(which, [&](const LaneTurn& turn) {
      const double left = std::max(until - clock_.elapsed(), 0.0);
      const bool must = turn.first && nothing_yet;
      if (over() || (left <= 0 && !must)) {
        return;
      }
      const double fair = left * turn.share;
      const double most =
          contest_.search() ? kTimesFair * fair : std::max(fair, kShareOfFirst * left);
      Try(turn.item, share, std::min(most, left), must);
    });
  }

  double trying_seconds() const {
    return contest_.seconds() * (contest_.refits() ? kTryingShare : 1);
  }

  // Tries all candidates. With many columns, once trees have shown which matter, selections of
  // fewer columns come before a kind's further settings: leaving out columns matters more than
  // tuning.
  void TryKinds() {
    std::vector<size_t> first, selective, further;
    std::set<std::string> kinds;
    for (const size_t i : All()) {
      const bool of_kind = !candidate(i).selects() && kinds.insert(candidate(i).kind()).second;
      (candidate(i).selects() ? selective : of_kind ? first : further).push_back(i);
    }
    if (selective.empty()) {
      TryAll(All(), 1, trying_seconds());
      return;
    }
    // The selection depends on what trees find out about the columns.
    std::stable_partition(first.begin(), first.end(),
                          [this](size_t i) { return candidate(i).kind() == "trees"; });
    TryAll(first, 1, kFirstShare * trying_seconds());
    if (SelectColumns(selective)) {  // quick; it gets its time however long the first ones took
      const double trying = trying_seconds();
      const double until = std::max(kSelectiveShare * trying,
                                    clock_.elapsed() + (kSelectiveShare - kFirstShare) * trying);
      TryAll(selective, 1, std::min(until, contest_.seconds()));
    }
    TryAll(further, 1, trying_seconds());
  }

  // False: there is nothing to select by, or hardly any column to leave out.
  bool SelectColumns(const std::vector<size_t>& selective) {
    std::vector<size_t> trees;
    for (const size_t i : All()) {
      if (candidate(i).kind() == "trees") {
        trees.push_back(i);
      }
    }
    const std::optional<size_t> best = Best(trees);
    if (over() || !best) {
      return false;
    }
    const Result<std::set<std::string>> columns =
        InformativeColumns(candidate(*best).plan().model(), trials_[*best].trained.weights);
    if (!columns.ok() || columns->empty()) {
      return false;
    }
    for (const size_t i : selective) {
      plan::Candidate* own = contest_.mutable_candidates(static_cast<int>(i));
      if (!KeepColumns(*columns, own->mutable_plan()).ok()) {
        return false;
      }
      own->set_settings(fmt::format("{}{}{} columns: {}", own->settings(),
                                    own->settings().empty() ? "" : ", ", columns->size(),
                                    fmt::join(*columns, ", ")));
    }
    return true;
  }

  void Search() {
    ForEachRung(trials_.size(), contest_.halves(), [this](const SearchRung& rung) {
      if (over()) {
        return std::vector<size_t>();
      }
      const double now = clock_.elapsed();
      TryAll(rung.candidates, rung.share,
             now + (trying_seconds() - now) / static_cast<double>(rung.left));
      return BestFirst(contest_, trials_, rung.candidates);
    });
  }

  // Whether there is time to train this candidate on all rows.
  bool MayRefit(const Trial& trial) const {
    constexpr double kSafety = 1.2;
    const double run = std::max(1U, trial.trained.outcome.epochs);
    const double seconds = trial.seconds * std::min(1.0, trial.best_epoch / run);
    return contest_.refits() && clock_.elapsed() + kSafety * seconds <= contest_.seconds();
  }

  // Trains the members on all rows for storing. Ignores the time limit if there is no model of all
  // rows otherwise: with folds or a sample. A search that was stopped reads no more and stores the
  // last fold's model.
  Result<std::vector<Trained>> Refit(const std::vector<size_t>& members) {
    const bool must = contest_.folds() > 0 || contest_.sample_rows() > 0;
    std::vector<Trained> trained(trials_.size());
    std::vector<Status> ended(trials_.size());
    InLanes(members, [&](const LaneTurn& turn) {
      Trial& trial = trials_[turn.item];
      if (stopped() || (!must && !MayRefit(trial))) {
        trained[turn.item] = std::move(trial.trained);
        return;
      }
      ++refitted_;
      Result<Trained> whole = Internal("not trained yet");
      patience_.Do([&] {
        whole = OnAllRows(turn.item);
        return whole.status();
      });
      if (whole.ok()) {
        trained[turn.item] = *std::move(whole);
      } else {
        ended[turn.item] = whole.status();
      }
    });
    std::vector<Trained> in_order;
    for (const size_t i : members) {
      RETURN_IF_ERROR(ended[i]);
      in_order.push_back(std::move(trained[i]));
    }
    return in_order;
  }

  Result<Trained> OnAllRows(size_t i) {
    return contest_.sample_rows() > 0
               ? TrainOnce({.plan = candidate(i).plan(),
                            .source = all_.source,
                            .dataset = all_.dataset,
                            .validation = all_.validation,
                            .progress = clock_.Progress(),
                            .stop = job_.stop_token(),
                            .processors = 1,
                            .profile = all_.profile})
               : TrainOnAll(candidate(i), trials_[i], all_, job_.stop_token(), clock_.Progress());
  }

  Result<ContestResult> Finish() {
    const std::vector<size_t> members = choice_.Members();
    ASSIGN_OR_RETURN(std::vector<Trained> trained, Refit(members));
    ContestResult result;
    result.plan = std::make_unique<plan::TrainPlan>(PlanOf(members.front()));
    if (refitted_ == members.size()) {  // all rows are trained on, so none are left for evaluation
      result.plan->clear_split();
    }
    if (members.size() == 1) {
      result.trained = std::move(trained.front());
    } else {
      Join(members, trained, &result);
    }
    elastic::TrainOutcome& outcome = result.trained.outcome;
    outcome.metrics =
        MetricsOf(plan_.model(), choice_.judgement).Values(elastic::FurtherMetrics(plan_));
    outcome.validation_rows = static_cast<int64_t>(choice_.judgement.labels.size());
    result.trained.held_out = {choice_.judgement.outputs, choice_.judgement.predictions,
                               choice_.judgement.labels, choice_.judgement.weights};
    for (const Trial& trial : trials_) {
      outcome.rows_read += trial.rows_read;
    }
    Record(members, result.plan.get());
    return result;
  }

  void Join(const std::vector<size_t>& members, const std::vector<Trained>& trained,
            ContestResult* result) const {
    std::vector<plan::TrainPlan> plans;
    std::transform(members.begin(), members.end(), std::back_inserter(plans),
                   [this](size_t i) { return PlanOf(i); });
    std::vector<std::pair<const models::ModelSpec*, double>> specs;
    std::vector<std::string> weights;
    elastic::TrainOutcome& outcome = result->trained.outcome;
    int64_t parameters = 0;
    for (size_t m = 0; m < members.size(); ++m) {
      specs.emplace_back(&plans[m].model(), choice_.weights[members[m]]);
      weights.push_back(trained[m].weights);
      parameters += plans[m].parameter_count();
      const elastic::TrainOutcome& own = trained[m].outcome;
      outcome.loss += choice_.weights[members[m]] * own.loss;
      outcome.epochs = std::max(outcome.epochs, own.epochs);
      outcome.rows_per_epoch = std::max(outcome.rows_per_epoch, own.rows_per_epoch);
      outcome.rows_trained += own.rows_trained;
      outcome.rows_read += own.rows_read;
    }
    result->trained.weights = models::PackBlend(weights);
    *result->plan->mutable_model() = models::JoinModels(specs);
    *result->plan->mutable_model()->mutable_calibration() = plan_.model().calibration();
    result->plan->set_parameter_count(parameters);
    result->plan->set_optimum(false);
  }

  // Records in the plan what each candidate reached, and tells the client in a line.
  void Record(const std::vector<size_t>& members, plan::TrainPlan* stored) {
    plan::Contest* table = stored->mutable_contest();
    *table = contest_;
    table->set_validation_rows(static_cast<int64_t>(choice_.judgement.labels.size()));
    table->set_refitted(refitted_ == members.size());
    RecordTrials(trials_, choice_, table);
    AnswerTo(plan_, stored);
    std::string why = WhyChosen(plan_.model(), stored->contest(), choice_);
    why += refitted_ == members.size() ? "; trained on all rows"
           : refitted_ > 0
               ? fmt::format("; {} of the {} trained on all rows", refitted_, members.size())
               : "";
    stored->set_chosen_because(why);
    for (const std::string& line : RankCandidates(stored->contest())) {
      job_.Event("result", line);
    }
    job_.Announce("chosen", why);
  }

  const plan::TrainPlan& plan_;
  plan::Contest contest_;  // selective candidates have the columns that were found
  const TrialRows all_;
  const catalog::DatasetSpec sample_;
  JobRecord& job_;
  std::vector<Trial> trials_;
  ContestClock clock_;
  DatabasePatience patience_;
  ContestChoice choice_;
  std::atomic<size_t> refitted_ = 0;  // members that were trained once more, on all rows
};

}  // namespace

Result<ContestResult> RunContest(const plan::TrainPlan& plan, catalog::DataSource& source,
                                 const Datasets& datasets, JobRecord& job,
                                 const elastic::ProgressCallback& progress) {
  return Contest(plan, source, datasets, job, progress).Run();
}

}  // namespace sluice::executor
