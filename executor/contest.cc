#include "executor/contest.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "catalog/data_source.h"
#include "catalog/dataset.pb.h"
#include "elastic/job/further_metrics.h"
#include "executor/candidate_trial.h"
#include "executor/contest_clock.h"
#include "executor/contest_description.h"
#include "executor/job_record.h"
#include "executor/selected_features.h"
#include "models/blend/blend.h"
#include "planner/plan.pb.h"

namespace sluice::executor {
namespace {

// Of a contest's time so much is for trying, where what wins is trained once more.
constexpr double kTryingShare = 0.6;
// Of that, until which part the kinds as they are, and those on fewer columns, are to be done.
constexpr double kFirstShare = 0.5;
constexpr double kSelectiveShare = 0.75;
// Successive halving: how far each rung goes, and what share of the trials sees the next one.
constexpr double kRungs[] = {1.0 / 9, 1.0 / 3, 1};
constexpr size_t kKeptOf = 3;
// One setting may need more time than another; the last ones are then not tried.
constexpr double kTimesFair = 3;
// Of what is left of the time each kind's next model may take so much: the first ones are those
// that most tables are learnt best by, and one that comes to its end is worth more than two that do
// not.
constexpr double kShareOfFirst = 0.5;

class Contest {
 public:
  Contest(const plan::TrainPlan& plan, catalog::DataSource& source, const Datasets& datasets,
          JobRecord& job, const elastic::ProgressCallback& progress)
      : plan_(plan),
        contest_(plan.contest()),
        all_{source, datasets.train->spec(),
             datasets.validation == nullptr ? nullptr : &datasets.validation->spec()},
        sample_(contest_.sample_rows() > 0 ? FirstRows(all_.dataset, contest_.sample_rows())
                                           : catalog::DatasetSpec()),
        job_(job),
        trials_(static_cast<size_t>(contest_.candidates_size())),
        clock_(contest_.seconds(), progress) {}

  Result<ContestResult> Run() {
    contest_.search() ? Search() : TryKinds();
    if (job_.stop_token().stop_requested() && !contest_.search()) {
      return Cancelled("the training was cancelled");
    }
    const std::optional<size_t> best = Best(All());
    if (!best) {
      return job_.stop_token().stop_requested() ? Cancelled("the training was cancelled")
                                                : NothingWon();
    }
    weights_.assign(trials_.size(), 0);
    weights_[*best] = 1;
    judgement_ = trials_[*best].judgement;
    if (contest_.blends()) {
      Blend(*best);
    }
    return Finish(*best);
  }

 private:
  TrialRows Rows() const {
    return {all_.source, contest_.sample_rows() > 0 ? sample_ : all_.dataset, all_.validation};
  }
  bool stopped() const { return job_.stop_token().stop_requested(); }
  std::vector<size_t> All() const {
    std::vector<size_t> all(trials_.size());
    for (size_t i = 0; i < all.size(); ++i) {
      all[i] = i;
    }
    return all;
  }
  // As it is stored.
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
  bool Better(double a, double b) const {
    return models::Metrics::HigherIsBetter(contest_.metric()) ? a > b : a < b;
  }
  std::optional<size_t> Best(const std::vector<size_t>& among) const {
    std::optional<size_t> best;
    for (const size_t i : among) {
      if (trials_[i].tried && trials_[i].status.ok() &&
          (!best || Better(trials_[i].value, trials_[*best].value))) {
        best = i;
      }
    }
    return best;
  }

  // One candidate, for `seconds` at most. What must come to something is never broken off.
  void Try(size_t i, double share, double seconds, bool must) {
    Trial trial = RunTrial(candidate(i), contest_, share, Rows(),
                           {job_.stop_token(), seconds, must}, clock_.Progress());
    const std::string said =
        trial.status.ok()
            ? fmt::format("{} {:.6g}, {:.1f} s{}{}", contest_.metric(), trial.value, trial.seconds,
                          trial.cut_short ? ", stopped at its best so far" : "",
                          share < 1 ? fmt::format(", {:.0f} % of the way", 100 * share) : "")
            : trial.status.message();
    if (!stopped()) {  // whoever waits hears of a candidate once, not after each rung
      const std::string line = fmt::format("{}: {}", candidate(i).name(), said);
      trials_[i].tried ? job_.Event("candidate", line) : job_.Tell("candidate", line);
    }
    // A later rung that failed leaves what the earlier one has shown.
    if (trial.status.ok() || !trials_[i].tried) {
      trials_[i] = std::move(trial);
    }
  }

  // All of these, two at a time: networks, which use one processor, beside the others.
  void TryAll(const std::vector<size_t>& which, double share, double until) {
    std::vector<size_t> lanes[2];
    for (const size_t i : which) {
      const bool network = candidate(i).kind() == "network" || candidate(i).kind() == "wide_deep";
      lanes[network && std::thread::hardware_concurrency() > 1 ? 1 : 0].push_back(i);
    }
    const bool nothing_yet = !Best(All()).has_value();
    const auto run = [&](const std::vector<size_t>& lane, bool first) {
      for (size_t k = 0; k < lane.size() && !stopped(); ++k) {
        const double left = until - clock_.elapsed();
        const bool must = first && k == 0 && nothing_yet;
        if (left > 0 || must) {
          const double fair = std::max(left, 0.0) / static_cast<double>(lane.size() - k);
          const double most = contest_.search()
                                  ? kTimesFair * fair
                                  : std::max(fair, kShareOfFirst * std::max(left, 0.0));
          Try(lane[k], share, std::clamp(most, 0.0, std::max(left, 0.0)), must);
        }
      }
    };
    const bool only_networks = lanes[0].empty();
    std::jthread networks;
    if (!lanes[1].empty() && !only_networks) {
      networks = std::jthread([&] { run(lanes[1], false); });
    }
    run(lanes[only_networks ? 1 : 0], true);
  }

  double trying_seconds() const {
    return contest_.seconds() * (contest_.refits() ? kTryingShare : 1);
  }

  // All candidates. Of many columns those on fewer, when trees have told of which, before a kind's
  // further settings: what is left out of the columns counts for more than what is turned.
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
    // Everything else waits for what trees tell of the columns.
    std::stable_partition(first.begin(), first.end(),
                          [this](size_t i) { return candidate(i).kind() == "trees"; });
    TryAll(first, 1, kFirstShare * trying_seconds());
    if (SelectColumns(selective)) {  // which is soon done: however long the first ones took
      const double trying = trying_seconds();
      const double until = std::max(kSelectiveShare * trying,
                                    clock_.elapsed() + (kSelectiveShare - kFirstShare) * trying);
      TryAll(selective, 1, std::min(until, contest_.seconds()));
    }
    TryAll(further, 1, trying_seconds());
  }

  // False: there is nothing to select by, or hardly anything to leave out.
  bool SelectColumns(const std::vector<size_t>& selective) {
    std::vector<size_t> trees;
    for (const size_t i : All()) {
      if (candidate(i).kind() == "trees") {
        trees.push_back(i);
      }
    }
    const std::optional<size_t> best = Best(trees);
    if (stopped() || !best) {
      return false;
    }
    const Result<std::set<std::string>> columns =
        ColumnsThatTell(candidate(*best).plan().model(), trials_[*best].trained.weights);
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
    std::vector<size_t> left = All();
    const bool halves = contest_.halves() && left.size() > kKeptOf;
    constexpr size_t kCount = std::size(kRungs);
    for (size_t rung = halves ? 0 : kCount - 1; rung < kCount && !stopped(); ++rung) {
      const double now = clock_.elapsed();
      TryAll(left, kRungs[rung],
             now + (trying_seconds() - now) / static_cast<double>(kCount - rung));
      std::erase_if(left, [&](size_t i) { return !trials_[i].tried || !trials_[i].status.ok(); });
      std::stable_sort(left.begin(), left.end(), [this](size_t a, size_t b) {
        return Better(trials_[a].value, trials_[b].value);
      });
      left.resize((left.size() + kKeptOf - 1) / kKeptOf);
    }
  }

  Status NothingWon() const {
    Status status =
        InvalidArgument(fmt::format("none of the {} candidates could be trained", trials_.size()));
    std::vector<std::string> why;
    for (const size_t i : All()) {
      if (trials_[i].tried) {
        why.push_back(fmt::format("{}: {}", candidate(i).name(), trials_[i].status.message()));
      }
    }
    return std::move(status).Detail(fmt::format("{}", fmt::join(why, "; ")));
  }

  void Blend(size_t best) {
    models::BlendRows rows;
    rows.task = models::TaskOf(plan_.model());
    rows.outputs = judgement_.outputs;
    rows.labels = judgement_.labels;
    rows.weights = judgement_.weights;
    std::vector<size_t> able;
    for (const size_t i : All()) {
      if (trials_[i].tried && trials_[i].status.ok() &&
          trials_[i].judgement.predictions.size() == judgement_.predictions.size()) {
        able.push_back(i);
        rows.predictions.emplace_back(trials_[i].judgement.predictions);
      }
    }
    if (able.size() < 2 || rows.task == models::Task::kRanking) {
      return;
    }
    const auto place =
        static_cast<size_t>(std::find(able.begin(), able.end(), best) - able.begin());
    const models::Blend blend = models::FitBlend(rows, place);
    Judgement blended = judgement_;
    blended.predictions = models::BlendPredictions(rows, blend.weights);
    blend_value_ = MetricsOf(plan_.model(), blended).Value(contest_.metric());
    if (!blend.better || !Better(blend_value_, trials_[best].value)) {
      return;
    }
    judgement_ = std::move(blended);
    for (size_t m = 0; m < able.size(); ++m) {
      weights_[able[m]] = blend.weights[m];
    }
  }

  // The members of the model, the heaviest first.
  std::vector<size_t> Members() const {
    std::vector<size_t> members;
    for (size_t i = 0; i < weights_.size(); ++i) {
      if (weights_[i] > 0) {
        members.push_back(i);
      }
    }
    std::stable_sort(members.begin(), members.end(),
                     [this](size_t a, size_t b) { return weights_[a] > weights_[b]; });
    return members;
  }

  // Whether there is time to train one of them on all rows.
  bool MayRefit(const Trial& trial) const {
    constexpr double kSafety = 1.2;
    const double run = std::max(1U, trial.trained.outcome.epochs);
    const double seconds = trial.seconds * std::min(1.0, trial.best_epoch / run);
    return contest_.refits() && clock_.elapsed() + kSafety * seconds <= contest_.seconds();
  }

  // The members as they are to be stored. Without a time limit where there is no model of all rows
  // otherwise: of folds, and of a sample. A search that was stopped reads no more: the last fold's.
  Status Refit(const std::vector<size_t>& members, std::vector<Trained>* trained) {
    const bool sampled = contest_.sample_rows() > 0;
    const bool must = contest_.folds() > 0 || sampled;
    for (const size_t i : members) {
      Trial& trial = trials_[i];
      if (stopped() || (!must && !MayRefit(trial))) {
        trained->push_back(std::move(trial.trained));
        continue;
      }
      ++refitted_;
      Result<Trained> whole =
          sampled ? TrainOnce({.plan = candidate(i).plan(),
                               .source = all_.source,
                               .dataset = all_.dataset,
                               .validation = all_.validation,
                               .progress = clock_.Progress(),
                               .stop = job_.stop_token()})
                  : TrainOnAll(candidate(i), trial, all_, job_.stop_token(), clock_.Progress());
      RETURN_IF_ERROR(whole.status());
      trained->push_back(std::move(whole).value());
    }
    return OkStatus();
  }

  Result<ContestResult> Finish(size_t best) {
    const std::vector<size_t> members = Members();
    std::vector<Trained> trained;
    RETURN_IF_ERROR(Refit(members, &trained));
    ContestResult result;
    result.plan = std::make_unique<plan::TrainPlan>(PlanOf(members.front()));
    if (refitted_ == members.size()) {  // nothing of the rows is left to judge by
      result.plan->clear_split();
    }
    if (members.size() == 1) {
      result.trained = std::move(trained.front());
    } else {
      Join(members, trained, &result);
    }
    elastic::TrainOutcome& outcome = result.trained.outcome;
    outcome.metrics = MetricsOf(plan_.model(), judgement_).Values(elastic::FurtherMetrics(plan_));
    outcome.validation_rows = static_cast<int64_t>(judgement_.labels.size());
    result.trained.held_out = {judgement_.outputs, judgement_.predictions, judgement_.labels,
                               judgement_.weights};
    for (const Trial& trial : trials_) {
      outcome.rows_read += trial.rows_read;
    }
    Record(best, members, result.plan.get());
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
      specs.emplace_back(&plans[m].model(), weights_[members[m]]);
      weights.push_back(trained[m].weights);
      parameters += plans[m].parameter_count();
      const elastic::TrainOutcome& own = trained[m].outcome;
      outcome.loss += weights_[members[m]] * own.loss;
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

  // What each candidate was worth, into the plan that is stored; and a line for whoever waits.
  void Record(size_t best, const std::vector<size_t>& members, plan::TrainPlan* stored) {
    plan::Contest* table = stored->mutable_contest();
    *table = contest_;
    table->set_validation_rows(static_cast<int64_t>(judgement_.labels.size()));
    table->set_refitted(refitted_ == members.size());
    for (size_t i = 0; i < trials_.size(); ++i) {
      plan::Candidate* row = table->mutable_candidates(static_cast<int>(i));
      row->clear_plan();
      const Trial& trial = trials_[i];
      row->set_seconds(trial.seconds);
      row->set_weight(weights_[i]);
      if (trial.tried && trial.status.ok()) {
        row->set_value(trial.value);
      }
      row->set_outcome(!trial.tried         ? "not tried"
                       : !trial.status.ok() ? trial.status.message()
                       : weights_[i] == 1   ? "kept"
                       : weights_[i] > 0    ? "in the blend"
                       : trial.cut_short    ? "stopped at its best so far"
                                            : "");
    }
    stored->set_has_base(false);
    stored->set_statement(plan_.statement());
    stored->set_into_schema(plan_.into_schema());
    stored->set_into_name(plan_.into_name());
    stored->set_must_be_new(plan_.must_be_new());
    *stored->mutable_metrics() = plan_.metrics();
    const std::string rows =
        fmt::format("{} validation rows{}", table->validation_rows(),
                    contest_.folds() > 0 ? fmt::format(" of {} folds", contest_.folds()) : "");
    std::string why;
    if (members.size() == 1) {
      why = fmt::format("{}{} was chosen: {} {:.6g} on {}",
                        contest_.search() ? plan_.model().type() + ", " : "",
                        candidate(best).name(), contest_.metric(), trials_[best].value, rows);
    } else {
      std::vector<std::string> shares;
      for (const size_t i : members) {
        shares.push_back(fmt::format("{:.2f} x {}", weights_[i], candidate(i).name()));
      }
      why = fmt::format("a blend was chosen, {}: {} {:.6g} on {}, the best of them alone {:.6g}",
                        fmt::join(shares, " + "), contest_.metric(), blend_value_, rows,
                        trials_[best].value);
    }
    why += refitted_ == members.size() ? "; trained on all rows"
           : refitted_ > 0
               ? fmt::format("; {} of the {} trained on all rows", refitted_, members.size())
               : "";
    stored->set_chosen_because(why);
    KeepTable(*stored);
    job_.Tell("chosen", why);
  }

  // All candidates with the job, the best first: those that came to nothing last.
  void KeepTable(const plan::TrainPlan& stored) {
    std::vector<size_t> order = All();
    const auto worth = [this](size_t i) { return trials_[i].tried && trials_[i].status.ok(); };
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return worth(a) != worth(b) ? worth(a)
                                  : worth(a) && Better(trials_[a].value, trials_[b].value);
    });
    for (size_t place = 0; place < order.size(); ++place) {
      const plan::Candidate& row = stored.contest().candidates(static_cast<int>(order[place]));
      job_.Event("result", fmt::format("{}. {}: {}", place + 1, row.name(),
                                       DescribeCandidate(stored.contest(), row)));
    }
  }

  const plan::TrainPlan& plan_;
  plan::Contest contest_;  // of selective candidates: with the columns that were found
  const TrialRows all_;
  const catalog::DatasetSpec sample_;
  JobRecord& job_;
  std::vector<Trial> trials_;
  ContestClock clock_;
  std::vector<double> weights_;  // of each candidate in the model
  Judgement judgement_;          // of the model
  double blend_value_ = 0;
  size_t refitted_ = 0;  // members that were trained once more, on all rows
};

}  // namespace

Result<ContestResult> RunContest(const plan::TrainPlan& plan, catalog::DataSource& source,
                                 const Datasets& datasets, JobRecord& job,
                                 const elastic::ProgressCallback& progress) {
  return Contest(plan, source, datasets, job, progress).Run();
}

}  // namespace sluice::executor
