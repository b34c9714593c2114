#include "executor/contest/contest_record.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "executor/contest/contest_choice.h"
#include "planner/plan.pb.h"

namespace sluice::executor {

std::vector<size_t> BestFirst(const plan::Contest& contest, const std::vector<Trial>& trials,
                              const std::vector<size_t>& among) {
  std::vector<size_t> able;
  std::copy_if(among.begin(), among.end(), std::back_inserter(able),
               [&trials](size_t i) { return trials[i].tried && trials[i].status.ok(); });
  const bool higher = models::Metrics::HigherIsBetter(contest.metric());
  std::stable_sort(able.begin(), able.end(), [&](size_t a, size_t b) {
    return higher ? trials[a].value > trials[b].value : trials[a].value < trials[b].value;
  });
  return able;
}

std::string DescribeTrial(const plan::Contest& contest, size_t candidate, const Trial& trial,
                          double share) {
  const std::string said =
      trial.status.ok()
          ? fmt::format("{} {:.6g}, {:.1f} s{}{}", contest.metric(), trial.value, trial.seconds,
                        trial.cut_short ? ", stopped at its best so far" : "",
                        share < 1 ? fmt::format(", {:.0f} % of the way", 100 * share) : "")
          : trial.status.message();
  return fmt::format("{}: {}", contest.candidates(static_cast<int>(candidate)).name(), said);
}

Status NoCandidateWon(const plan::Contest& contest, const std::vector<Trial>& trials) {
  const std::string none = fmt::format("none of the {} candidates could be trained", trials.size());
  std::vector<std::string> why;
  std::set<std::string> reasons;
  const Trial* last = nullptr;
  for (size_t i = 0; i < trials.size(); ++i) {
    if (trials[i].tried) {
      last = &trials[i];
      reasons.insert(last->status.message());
      why.push_back(fmt::format("{}: {}", contest.candidates(static_cast<int>(i)).name(),
                                last->status.message()));
    }
  }
  if (reasons.size() == 1) {  // it keeps its SQLSTATE and its hint
    return Status(last->status).Because(none);
  }
  return InvalidArgument(none).Detail(fmt::format("{}", fmt::join(why, "; ")));
}

void RecordTrials(const std::vector<Trial>& trials, const ContestChoice& choice,
                  plan::Contest* table) {
  for (size_t i = 0; i < trials.size(); ++i) {
    plan::Candidate* row = table->mutable_candidates(static_cast<int>(i));
    row->clear_plan();
    const Trial& trial = trials[i];
    row->set_seconds(trial.seconds);
    row->set_weight(choice.weights[i]);
    if (trial.tried && trial.status.ok()) {
      row->set_value(trial.value);
    }
    row->set_outcome(!trial.tried             ? "not tried"
                     : !trial.status.ok()     ? trial.status.message()
                     : choice.weights[i] == 1 ? "kept"
                     : choice.weights[i] > 0  ? "in the blend"
                     : trial.cut_short        ? "stopped at its best so far"
                                              : "");
  }
}

void AnswerTo(const plan::TrainPlan& statement, plan::TrainPlan* winner) {
  winner->set_has_base(false);
  winner->set_statement(statement.statement());
  winner->set_into_schema(statement.into_schema());
  winner->set_into_name(statement.into_name());
  winner->set_must_be_new(statement.must_be_new());
  *winner->mutable_metrics() = statement.metrics();
}

}  // namespace sluice::executor
