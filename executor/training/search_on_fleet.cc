#include "executor/training/search_on_fleet.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "catalog/data_source.h"
#include "catalog/dataset.pb.h"
#include "catalog/job_store.h"
#include "elastic/job/fleet_job.h"
#include "executor/contest/contest_choice.h"
#include "executor/contest/contest_clock.h"
#include "executor/contest/contest_description.h"
#include "executor/contest/contest_record.h"
#include "executor/contest/contest_rungs.h"
#include "executor/contest/database_patience.h"
#include "executor/in_process/fixed_schedule.h"
#include "executor/jobs/job_record.h"
#include "executor/training/search_fleet.h"
#include "executor/training/search_ledger.h"
#include "planner/plan.pb.h"

namespace sluice::executor {
namespace {

// A training may take this multiple of its fair share of the time.
constexpr double kTimesFair = 3;

// The errors of a master that can do nothing more, rather than of a candidate.
bool EndsTheMaster(const Status& status) {
  return status.code() == Code::kAborted || status.code() == Code::kUnavailable;
}

class Search {
 public:
  Search(const plan::TrainPlan& plan, catalog::DataSource& source, catalog::JobStore& jobs,
         JobRecord& job, const TrainingFleet& place, const elastic::ProgressCallback& progress)
      : plan_(plan),
        contest_(plan.contest()),
        source_(source),
        job_(job),
        place_(place),
        fleet_(place.fleet, place.endpoint),
        ledger_(jobs, job.id(), place.dataset.fingerprint()),
        progress_(progress),
        patience_(plan.database_patience_seconds(), job.stop_token(),
                  [&job](const std::string& why) { job.Announce(elastic::kDatabaseWaits, why); }),
        trials_(static_cast<size_t>(contest_.candidates_size())) {}

  Result<ContestResult> Run() {
    Status ended;
    ForEachRung(trials_.size(), contest_.halves(), [this, &ended](const SearchRung& rung) {
      ended = TryAll(rung);
      return ended.ok() && !stopped() ? BestFirst(contest_, trials_, rung.candidates)
                                      : std::vector<size_t>();
    });
    RETURN_IF_ERROR(ended);
    if (stopped() && (!best_ || !contest_.search())) {
      return Cancelled("the training was cancelled");
    }
    if (!best_) {
      return NoCandidateWon(contest_, trials_);
    }
    if (stopped()) {  // perhaps because its process dies, and then another one goes on
      RETURN_IF_ERROR(CheckWanted(place_));
    }
    return Finish();
  }

 private:
  struct Best {
    size_t candidate = 0;
    uint32_t training = 0;
    Trial trial;
  };

  bool stopped() const { return job_.stop_token().stop_requested(); }
  double elapsed() const { return earlier_seconds_ + SecondsBetween(started_, clock_.Now()); }
  const plan::Candidate& candidate(size_t i) const {
    return contest_.candidates(static_cast<int>(i));
  }

  Status TryAll(const SearchRung& rung) {
    const double until =
        elapsed() + (contest_.seconds() - elapsed()) / static_cast<double>(rung.left);
    for (size_t place = 0; place < rung.candidates.size() && !stopped(); ++place) {
      const size_t i = rung.candidates[place];
      const auto training = static_cast<uint32_t>(rung.number * trials_.size() + i);
      ASSIGN_OR_RETURN(std::optional<Trial> over, ledger_.Find(training));
      if (over) {
        earlier_seconds_ += over->seconds;
        RETURN_IF_ERROR(Take(i, training, *std::move(over)));
        continue;
      }
      const double left = std::max(until - elapsed(), 0.0);
      if (left <= 0 && best_) {
        continue;
      }
      const double fair = left / static_cast<double>(rung.candidates.size() - place);
      trainings_left_ = rung.candidates.size() - place;
      RETURN_IF_ERROR(Train(i, training, rung.share, std::min(kTimesFair * fair, left)));
    }
    return OkStatus();
  }

  // The result of an earlier master's training.
  Status Take(size_t i, uint32_t training, Trial trial) {
    if (trial.status.ok() && IsBest(trial.value)) {
      best_ = Best{i, training, trial};
    }
    Note(i, std::move(trial));
    return OkStatus();
  }

  void Note(size_t i, Trial trial) {
    rows_before_ += trial.trained.outcome.rows_trained;
    rows_read_ += trial.rows_read;
    trial.trained.weights.clear();
    trial.trained.outcome.ForgetModel();
    // If a later round fails, the result of the earlier one stays.
    if (trial.status.ok() || !trials_[i].tried) {
      trials_[i] = std::move(trial);
    }
  }

  bool IsBest(double value) const {
    return !best_ ||
           (models::Metrics::HigherIsBetter(contest_.metric()) ? value > best_->trial.value
                                                               : value < best_->trial.value);
  }

  // Trains one candidate and records how it ended, unless the search was stopped meanwhile.
  Status Train(size_t i, uint32_t training, double share, double seconds) {
    plan::TrainPlan plan = candidate(i).plan();
    if (share < 1) {
      Shorten(share, &plan);
    }
    plan.add_metrics(contest_.metric());
    const TimePoint started = clock_.Now();
    const SoftLimit limit(job_.stop_token(), seconds, !best_.has_value());
    Trial trial;
    trial.tried = true;
    SearchJournal journal(place_.journal, training);
    const auto over = [&](Trained trained) {
      trial.trained = std::move(trained);
      trial.rows_read = trial.trained.outcome.rows_read;
      trial.cut_short = limit.finish().stop_requested();
      trial.seconds = SecondsBetween(started, clock_.Now());
      trial.status = Judge(&trial);
      return Keep(i, training, trial);
    };
    elastic::Succession succession;
    succession.journal = &journal;
    succession.commit = [&](const elastic::TrainOutcome& outcome) {
      return over({outcome, outcome.Stored()});
    };
    const elastic::TrainingJob job{.plan = plan,
                                   .source = source_,
                                   .dataset = place_.dataset,
                                   .validation = place_.validation,
                                   .progress = Progress(),
                                   .events = EventsOf(job_),
                                   .stop = limit.stop(),
                                   .finish = limit.finish(),
                                   .held = place_.held,
                                   .used = place_.used,
                                   .profile = &job_.profile()};
    Status ended;
    if (plan.strategy().kind() == plan::Strategy::LOCAL) {
      patience_.Do([&] { return ended = TrainInThisProcess(job, over); });
    } else {  // whose workers and master have been patient themselves
      ended = elastic::TrainOnFleet(job, fleet_, fleet_.Begin(training), succession).status();
    }
    fleet_.End();
    if (!ended.ok()) {
      if (stopped()) {
        return OkStatus();
      }
      if (EndsTheMaster(ended) || (IsTheDatabases(ended) && !limit.broken_off())) {
        return ended;
      }
      RETURN_IF_ERROR(CheckWanted(place_));  // else its processes died with what they belong to
      trial.status = limit.broken_off()
                         ? ResourceExhausted("time ran out before it came to anything")
                         : std::move(ended);
      trial.seconds = SecondsBetween(started, clock_.Now());
      RETURN_IF_ERROR(Keep(i, training, trial));
    }
    const std::string line = DescribeTrial(contest_, i, trial, share);
    trials_[i].tried ? job_.Event("candidate", line) : job_.Announce("candidate", line);
    Note(i, std::move(trial));
    return OkStatus();
  }

  // As trees do.
  static Status TrainInThisProcess(const elastic::TrainingJob& job,
                                   const std::function<Status(Trained)>& over) {
    ASSIGN_OR_RETURN(Trained trained, TrainOnce(job));
    return over(std::move(trained));
  }

  Status Judge(Trial* trial) const {
    const auto& metrics = trial->trained.outcome.metrics;
    const auto found = std::find_if(metrics.begin(), metrics.end(), [this](const auto& metric) {
      return metric.first == contest_.metric();
    });
    if (found == metrics.end()) {
      return InvalidArgument("there are no validation rows to judge by");
    }
    trial->value = found->second;
    return std::isfinite(trial->value) ? OkStatus()
                                       : InvalidArgument("its " + contest_.metric() +
                                                         " on the validation rows is no number");
  }

  Status Keep(size_t i, uint32_t training, const Trial& trial) {
    const bool best = trial.status.ok() && IsBest(trial.value);
    RETURN_IF_ERROR(ledger_.Keep(training, trial, best));
    if (best) {
      best_ = Best{i, training, trial};
      best_->trial.trained.outcome.ForgetModel();
    }
    return OkStatus();
  }

  // Counts the rows of all trainings of the search: those to come as if they took as many.
  elastic::ProgressCallback Progress() {
    return [this](const elastic::Progress& now) {
      if (!progress_) {
        return;
      }
      elastic::Progress whole = now;
      whole.rows_done += rows_before_;
      whole.rows_total = rows_before_ + now.rows_total * static_cast<int64_t>(trainings_left_);
      const double until_limit = std::max(contest_.seconds() - elapsed(), 0.0);
      whole.seconds_left = until_limit;
      if (now.rows_per_second > 0) {
        const auto rows_left = static_cast<double>(whole.rows_total - whole.rows_done);
        whole.seconds_left = std::clamp(rows_left / now.rows_per_second, 0.0, until_limit);
      }
      progress_(whole);
    };
  }

  Result<ContestResult> Finish() {
    const size_t i = best_->candidate;
    if (best_->trial.trained.weights.empty()) {  // an earlier master's
      ASSIGN_OR_RETURN(best_->trial.trained.weights, ledger_.Weights(best_->training));
    }
    ContestResult result;
    result.trained = std::move(best_->trial.trained);
    trials_[i] = std::move(best_->trial);
    result.plan = std::make_unique<plan::TrainPlan>(candidate(i).plan());
    elastic::TrainOutcome& outcome = result.trained.outcome;
    ContestChoice choice;
    choice.best = i;
    choice.value = choice.value_of_best = trials_[i].value;
    choice.weights.assign(trials_.size(), 0);
    choice.weights[i] = 1;
    plan::Contest* table = result.plan->mutable_contest();
    *table = contest_;
    table->set_validation_rows(outcome.validation_rows);
    RecordTrials(trials_, choice, table);
    AnswerTo(plan_, result.plan.get());
    const std::string why = WhyChosen(plan_.model(), *table, choice);
    result.plan->set_chosen_because(why);
    for (const std::string& line : RankCandidates(*table)) {
      job_.Event("result", line);
    }
    job_.Announce("chosen", why);
    outcome.rows_read = rows_read_;
    return result;
  }

  const plan::TrainPlan& plan_;
  const plan::Contest& contest_;
  catalog::DataSource& source_;
  JobRecord& job_;
  const TrainingFleet& place_;
  SearchFleet fleet_;
  SearchLedger ledger_;
  const elastic::ProgressCallback& progress_;
  DatabasePatience patience_;
  std::vector<Trial> trials_;  // without weights
  std::optional<Best> best_;
  const SteadyClock clock_;
  const TimePoint started_ = clock_.Now();
  double earlier_seconds_ = 0;  // of trainings under earlier masters
  int64_t rows_before_ = 0;     // trained by the trainings before this one
  int64_t rows_read_ = 0;
  size_t trainings_left_ = 1;  // of this round, with the one under way
};

}  // namespace

Result<ContestResult> SearchOnFleet(const plan::TrainPlan& plan, catalog::DataSource& source,
                                    catalog::JobStore& jobs, JobRecord& job,
                                    const TrainingFleet& place,
                                    const elastic::ProgressCallback& progress) {
  return Search(plan, source, jobs, job, place, progress).Run();
}

}  // namespace sluice::executor
