#include "executor/contest/contest_choice.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "models/blend/blend.h"
#include "planner/plan.pb.h"

namespace sluice::executor {

std::vector<size_t> ContestChoice::Members() const {
  std::vector<size_t> members;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] > 0) {
      members.push_back(i);
    }
  }
  std::stable_sort(members.begin(), members.end(),
                   [this](size_t a, size_t b) { return weights[a] > weights[b]; });
  return members;
}

ContestChoice Choose(const models::ModelSpec& model, const plan::Contest& contest,
                     const std::vector<Trial>& trials, size_t best) {
  ContestChoice alone;
  alone.best = best;
  alone.value_of_best = trials[best].value;
  alone.weights.assign(trials.size(), 0);
  alone.weights[best] = 1;
  alone.judgement = trials[best].judgement;
  alone.value = trials[best].value;
  models::BlendRows rows;
  rows.task = models::TaskOf(model);
  if (!contest.blends() || rows.task == models::Task::kRanking ||
      rows.task == models::Task::kQuantiles) {
    return alone;
  }
  rows.outputs = alone.judgement.outputs;
  rows.labels = alone.judgement.labels;
  rows.weights = alone.judgement.weights;
  rows.runs = alone.judgement.runs;
  rows.forecast = contest.split().kind() == plan::Split::TIME;
  std::vector<size_t> able;
  size_t place = 0;
  for (size_t i = 0; i < trials.size(); ++i) {
    const Trial& trial = trials[i];
    if (trial.tried && trial.status.ok() &&
        trial.judgement.predictions.size() == alone.judgement.predictions.size()) {
      place = i == best ? able.size() : place;
      able.push_back(i);
      rows.predictions.emplace_back(trial.judgement.predictions);
    }
  }
  if (able.size() < 2) {
    return alone;
  }
  const models::Blend blend = models::FitBlend(rows, place);
  ContestChoice blended = alone;
  blended.judgement.predictions = models::BlendPredictions(rows, blend.weights);
  blended.value = MetricsOf(model, blended.judgement).Value(contest.metric());
  const bool better = models::Metrics::HigherIsBetter(contest.metric())
                          ? blended.value > alone.value
                          : blended.value < alone.value;
  if (!blend.better || !better) {
    return alone;
  }
  for (size_t m = 0; m < able.size(); ++m) {
    blended.weights[able[m]] = blend.weights[m];
  }
  return blended;
}

std::string WhyChosen(const models::ModelSpec& model, const plan::Contest& contest,
                      const ContestChoice& choice) {
  const std::string rows =
      fmt::format("{} validation rows{}", contest.validation_rows(),
                  contest.folds() > 0 ? fmt::format(" of {} folds", contest.folds()) : "");
  const auto name = [&contest](size_t i) -> const std::string& {
    return contest.candidates(static_cast<int>(i)).name();
  };
  const std::vector<size_t> members = choice.Members();
  if (members.size() == 1) {
    return fmt::format("{}{} was chosen: {} {:.6g} on {}",
                       contest.search() ? model.type() + ", " : "", name(members.front()),
                       contest.metric(), choice.value, rows);
  }
  std::vector<std::string> shares;
  std::transform(members.begin(), members.end(), std::back_inserter(shares),
                 [&](size_t i) { return fmt::format("{:.2f} x {}", choice.weights[i], name(i)); });
  return fmt::format("a blend was chosen, {}: {} {:.6g} on {}, the best of them alone {:.6g}",
                     fmt::join(shares, " + "), contest.metric(), choice.value, rows,
                     choice.value_of_best);
}

}  // namespace sluice::executor
