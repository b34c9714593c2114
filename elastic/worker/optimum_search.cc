#include "elastic/worker/optimum_search.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "catalog/dataset.pb.h"
#include "elastic/worker/fixed_parameters.h"
#include "elastic/worker/loader_options.h"
#include "elastic/worker/row_selection.h"
#include "elastic/worker/split.h"
#include "models/metrics/metric.h"
#include "models/model.pb.h"
#include "planner/plan.pb.h"

namespace sluice::elastic {
namespace {

// Rows read from the database, or evaluated, at a time.
constexpr size_t kRowsAtATime = 4096;

// Class weights are for training only, not for evaluation.
std::vector<float> WithoutClassWeights(const models::LabelPlan& label,
                                       const models::FeatureBatch& rows) {
  std::vector<float> weights = rows.weights;
  for (size_t r = 0; r < weights.size() && label.class_weights_size() > 0; ++r) {
    const auto weight = static_cast<float>(label.class_weights(static_cast<int>(rows.labels[r])));
    weights[r] = weight > 0 ? weights[r] / weight : 1;
  }
  return weights;
}

}  // namespace

OptimumSearch::Outcome::Outcome() = default;
OptimumSearch::Outcome::Outcome(Outcome&&) noexcept = default;
OptimumSearch::Outcome::~Outcome() = default;

OptimumSearch::OptimumSearch(const Worker::Job& job, std::stop_token stop)
    : job_(job), stop_(std::move(stop)) {}

Result<std::unique_ptr<ShardLoader>> OptimumSearch::Open(
    const catalog::DatasetSpec& dataset, const models::Network& network,
    const ShardLoader::Options& options) const {
  ASSIGN_OR_RETURN(const SplitRule split, SplitRule::Make(job_.plan.split()));
  ASSIGN_OR_RETURN(auto loader,
                   ShardLoader::Make(job_.source, dataset, network.transform(), split, options));
  loader->HearStop(stop_);
  return loader;
}

Status OptimumSearch::ForEach(ShardLoader& loader, const catalog::DatasetSpec& dataset,
                              const Visitor& visit) const {
  for (int shard = 0; shard < dataset.shards_size(); ++shard) {
    RETURN_IF_ERROR(loader.Start(ShardId(shard)));
    Result<bool> complete = false;
    while (complete.ok() && !*complete) {
      complete = stop_.stop_requested() ? Cancelled("the training was stopped")
                                        : loader.Pump(kRowsAtATime);
      on_read_(loader.rows_read());
    }
    if (!complete.ok()) {
      loader.Abandon();
      return complete.status();
    }
    RETURN_IF_ERROR(visit(shard, *loader.Finish()));
  }
  return Status();
}

Status OptimumSearch::Judge(models::Network& network, ShardLoader& loader, Outcome* outcome) const {
  const bool apart = job_.validation != nullptr;
  if (!apart && job_.plan.split().kind() == plan::Split::NONE) {
    return Status();
  }
  const PhaseScope evaluating(job_.clock, Phase::kEvaluation);
  std::unique_ptr<ShardLoader> other;
  if (apart) {
    ShardLoader::Options options = LoaderOptionsOf(job_);
    options.all_validation = true;
    ASSIGN_OR_RETURN(other, Open(*job_.validation, network, options));
  }
  const auto judge = [&](int, const ShardRows& shard) {
    outcome->validation_rows += static_cast<int64_t>(shard.validation.rows);
    return Predict(network, outcome->found.weights, shard.validation,
                   [&](const std::vector<double>& found, const models::FeatureBatch& rows) {
                     outcome->metrics->Add(found, rows.OwnLabels(), rows.weights);
                   });
  };
  return apart ? ForEach(*other, *job_.validation, judge) : ForEach(loader, job_.dataset, judge);
}

// Visits the rows in blocks.
Status OptimumSearch::Predict(models::Network& network, const models::NetworkWeights& weights,
                              const models::FeatureBatch& rows,
                              const std::function<void(const std::vector<double>&,
                                                       const models::FeatureBatch&)>& take) const {
  FixedParameters parameters(network,
                             [&weights] { return Result<models::NetworkWeights>(weights); });
  models::ParameterView view;
  std::vector<double> found;
  std::vector<uint32_t> places;
  models::FeatureBatch batch;
  for (size_t begin = 0; begin < rows.rows; begin += places.size()) {
    places.resize(std::min(kRowsAtATime, rows.rows - begin));
    std::iota(places.begin(), places.end(), static_cast<uint32_t>(begin));
    GatherRows(rows, places, &batch);
    network.CollectIds(batch, &view);
    RETURN_IF_ERROR(parameters.Pull({}, Purpose::kEvaluation, &view));
    network.Predict(batch, view, &found);
    take(found, batch);
  }
  return Status();
}

Result<models::LinearOptimum::Found> OptimumSearch::Search(ShardLoader& loader) const {
  ASSIGN_OR_RETURN(const auto search, models::LinearOptimum::Make(job_.plan.model()));
  search->FinishOn(finish_);
  ASSIGN_OR_RETURN(const auto sums, models::LinearSums::Make(job_.plan.model()));
  const PhaseScope solving(job_.clock, Phase::kOptimizer);
  int64_t rows = 0;
  std::vector<models::LinearSums::Kept> kept(static_cast<size_t>(job_.dataset.shards_size()));
  const auto pass = [&](const models::LinearPass& which) -> Result<std::vector<double>> {
    rows = 0;
    std::vector<double> all, own;
    const auto add = [&](int shard, const ShardRows& read) {
      rows += static_cast<int64_t>(read.train.rows);
      const PhaseScope learning(job_.clock, Phase::kLearning);
      RETURN_IF_ERROR(sums->Sum(which, read.train, &kept[static_cast<size_t>(shard)], &own));
      models::AddUp(own, &all);
      return Status();
    };
    RETURN_IF_ERROR(ForEach(loader, job_.dataset, add));
    if (all.empty()) {  // there is no shard
      RETURN_IF_ERROR(sums->Sum(which, {}, nullptr, &all));
    }
    return all;
  };
  return search->Solve(pass, [&](const models::LinearOptimum::Step& step) {
    on_step_(step, rows);
    return stop_.stop_requested() ? Cancelled("the training was stopped") : Status();
  });
}

Result<OptimumSearch::Outcome> OptimumSearch::Run() {
  ASSIGN_OR_RETURN(const auto search, models::LinearOptimum::Make(job_.plan.model()));
  ASSIGN_OR_RETURN(const auto network, models::Network::Make(job_.plan.model()));
  ShardLoader::Options options = LoaderOptionsOf(job_);
  options.keep_rows = !search->one_pass();
  ASSIGN_OR_RETURN(const auto loader, Open(job_.dataset, *network, options));
  Outcome outcome;
  ASSIGN_OR_RETURN(outcome.found, Search(*loader));
  outcome.metrics = std::make_unique<models::Metrics>(job_.plan.model(), network->outputs());
  RETURN_IF_ERROR(Judge(*network, *loader, &outcome));
  outcome.rows_read = loader->rows_read();
  return outcome;
}

// Rows are assigned by the split from their positions, exactly as a reader would.
Result<std::vector<OptimumSearch::Fold>> OptimumSearch::CutIntoFolds(uint32_t folds,
                                                                     ShardLoader& loader) const {
  std::vector<SplitRule> rules;
  plan::Split split = job_.plan.split();
  split.set_kind(plan::Split::RANDOM);
  split.set_folds(folds);
  for (uint32_t fold = 0; fold < folds; ++fold) {
    split.set_fold(fold);
    ASSIGN_OR_RETURN(SplitRule rule, SplitRule::Make(split));
    rules.push_back(std::move(rule));
  }
  const std::vector<int64_t> firsts = PlacesOf(job_.dataset);
  std::vector<Fold> cut(folds);
  RETURN_IF_ERROR(ForEach(loader, job_.dataset, [&](int shard, const ShardRows& read) {
    RowPlaces places(job_.dataset.shards(shard), firsts[static_cast<size_t>(shard)]);
    std::vector<std::vector<uint32_t>> rows(folds);
    for (uint32_t row = 0; row < read.train.rows; ++row) {
      const int64_t place = places.Next();
      for (size_t fold = 0; fold < folds; ++fold) {
        if (rules[fold].IsValidation(place, {}, row)) {
          rows[fold].push_back(row);
        }
      }
    }
    for (size_t fold = 0; fold < folds; ++fold) {
      GatherRows(read.train, rows[fold], &cut[fold].emplace_back());
    }
    return Status();
  }));
  return cut;
}

Result<models::LinearOptimum::Found> OptimumSearch::SearchWithout(
    size_t fold, const std::vector<Fold>& folds) const {
  ASSIGN_OR_RETURN(const auto search, models::LinearOptimum::Make(job_.plan.model()));
  ASSIGN_OR_RETURN(const auto sums, models::LinearSums::Make(job_.plan.model()));
  const PhaseScope solving(job_.clock, Phase::kOptimizer);
  std::vector<std::vector<models::LinearSums::Kept>> kept(folds.size());
  const auto pass = [&](const models::LinearPass& which) -> Result<std::vector<double>> {
    std::vector<double> all, own;
    for (size_t other = 0; other < folds.size(); ++other) {
      kept[other].resize(folds[other].size());
      const PhaseScope learning(job_.clock, Phase::kLearning);
      for (size_t shard = 0; other != fold && shard < folds[other].size(); ++shard) {
        RETURN_IF_ERROR(sums->Sum(which, folds[other][shard], &kept[other][shard], &own));
        models::AddUp(own, &all);
      }
    }
    if (all.empty()) {
      RETURN_IF_ERROR(sums->Sum(which, {}, nullptr, &all));
    }
    return all;
  };
  return search->Solve(pass, [this](const models::LinearOptimum::Step&) {
    return stop_.stop_requested() ? Cancelled("the training was stopped") : Status();
  });
}

Result<OptimumSearch::Outcome> OptimumSearch::RunByFolds(uint32_t folds, HeldOut* held_out) {
  ASSIGN_OR_RETURN(const auto network, models::Network::Make(job_.plan.model()));
  ShardLoader::Options options = LoaderOptionsOf(job_);
  options.keep_rows = true;
  options.judge_training = true;
  ASSIGN_OR_RETURN(const auto loader, Open(job_.dataset, *network, options));
  ASSIGN_OR_RETURN(const std::vector<Fold> cut, CutIntoFolds(folds, *loader));
  held_out->outputs = network->outputs();
  const models::LabelPlan& label = job_.plan.model().features().label();
  const auto append = [](const auto& from, auto* to) {
    to->insert(to->end(), from.begin(), from.end());
  };
  const auto take = [&](const std::vector<double>& scores, const models::FeatureBatch& batch) {
    append(scores, &held_out->scores);
    append(batch.OwnLabels(), &held_out->labels);
    append(WithoutClassWeights(label, batch), &held_out->weights);
  };
  for (size_t fold = 0; fold < cut.size(); ++fold) {
    ASSIGN_OR_RETURN(const models::LinearOptimum::Found found, SearchWithout(fold, cut));
    const PhaseScope evaluating(job_.clock, Phase::kEvaluation);
    for (const models::FeatureBatch& rows : cut[fold]) {
      RETURN_IF_ERROR(Predict(*network, found.weights, rows, take));
    }
  }
  Outcome outcome;
  ASSIGN_OR_RETURN(outcome.found, Search(*loader));
  outcome.rows_read = loader->rows_read();
  return outcome;
}

}  // namespace sluice::elastic
