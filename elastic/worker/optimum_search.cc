#include "elastic/worker/optimum_search.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "catalog/dataset.pb.h"
#include "elastic/worker/row_selection.h"
#include "elastic/worker/split.h"
#include "models/features/label_scale.h"
#include "models/metrics/metric.h"
#include "models/model.pb.h"
#include "planner/plan.pb.h"

namespace sluice::elastic {
namespace {

// Rows read from the database, or evaluated, at a time.
constexpr size_t kRowsAtATime = 4096;

// A network's predictions with weights that are in memory.
class Predictions {
 public:
  Predictions(models::Network& network, const models::NetworkWeights& weights)
      : network_(network), weights_(weights) {
    for (const std::vector<float>& tensor : weights.dense) {
      view_.dense.push_back(tensor.data());
    }
  }

  const std::vector<float>& Of(const models::FeatureBatch& batch) {
    network_.CollectIds(batch, &view_);
    for (size_t t = 0; t < view_.tables.size(); ++t) {
      models::RowSet& rows = view_.tables[t];
      const models::NetworkWeights::Table& table = weights_.tables[t];
      const size_t dimension = network_.tables()[t].dimension;
      rows.values.assign(rows.ids.size() * dimension, 0);
      for (size_t i = 0; i < rows.ids.size(); ++i) {
        const auto found = std::lower_bound(table.ids.begin(), table.ids.end(), rows.ids[i]);
        if (found != table.ids.end() && *found == rows.ids[i]) {
          const auto row = static_cast<size_t>(found - table.ids.begin());
          std::copy_n(table.values.data() + row * dimension, dimension,
                      rows.values.data() + i * dimension);
        }
      }
    }
    network_.Predict(batch, view_, &predictions_);
    return predictions_;
  }

 private:
  models::Network& network_;
  const models::NetworkWeights& weights_;
  models::ParameterView view_;
  std::vector<float> predictions_;
};

}  // namespace

OptimumSearch::Outcome::Outcome() = default;
OptimumSearch::Outcome::Outcome(Outcome&&) noexcept = default;
OptimumSearch::Outcome::~Outcome() = default;

OptimumSearch::OptimumSearch(const Worker::Job& job, std::stop_token stop)
    : job_(job), stop_(std::move(stop)) {}

Result<std::unique_ptr<ShardLoader>> OptimumSearch::Open(const catalog::DatasetSpec& dataset,
                                                         const models::Network& network,
                                                         ShardLoader::Options options) const {
  ASSIGN_OR_RETURN(const SplitRule split, SplitRule::Make(job_.plan.split()));
  options.watch = job_.reads;
  if (job_.plan.database_patience_seconds() > 0) {
    options.patience_seconds = job_.plan.database_patience_seconds();
  }
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
    RETURN_IF_ERROR(visit(*loader.Finish()));
  }
  return Status();
}

Status OptimumSearch::Judge(models::Network& network, ShardLoader& loader, Outcome* outcome) const {
  const bool apart = job_.validation != nullptr;
  if (!apart && job_.plan.split().kind() == plan::Split::NONE) {
    return Status();
  }
  std::unique_ptr<ShardLoader> other;
  if (apart) {
    ShardLoader::Options options;
    options.all_validation = true;
    ASSIGN_OR_RETURN(other, Open(*job_.validation, network, options));
  }
  const models::LabelPlan& label = job_.plan.model().features().label();
  Predictions predictions(network, outcome->found.weights);
  std::vector<uint32_t> places;
  models::FeatureBatch batch;
  const auto judge = [&](const ShardRows& shard) {
    const models::FeatureBatch& rows = shard.validation;
    for (size_t begin = 0; begin < rows.rows; begin += places.size()) {
      places.resize(std::min(kRowsAtATime, rows.rows - begin));
      std::iota(places.begin(), places.end(), static_cast<uint32_t>(begin));
      GatherRows(rows, places, &batch);
      const std::vector<float>& found = predictions.Of(batch);
      models::RestoreLabelScale(label, &batch.labels);
      outcome->metrics->Add(found, batch.labels, batch.weights);
    }
    outcome->validation_rows += static_cast<int64_t>(rows.rows);
    return Status();
  };
  return apart ? ForEach(*other, *job_.validation, judge) : ForEach(loader, job_.dataset, judge);
}

Result<OptimumSearch::Outcome> OptimumSearch::Run() {
  ASSIGN_OR_RETURN(const auto search, models::LinearOptimum::Make(job_.plan.model()));
  search->FinishOn(finish_);
  ASSIGN_OR_RETURN(const auto network, models::Network::Make(job_.plan.model()));
  ShardLoader::Options options;
  options.keep_rows = !search->one_pass();
  ASSIGN_OR_RETURN(const auto loader, Open(job_.dataset, *network, options));
  int64_t rows = 0;
  const auto pass = [&](const models::LinearOptimum::Visitor& visit) {
    rows = 0;
    return ForEach(*loader, job_.dataset, [&](const ShardRows& shard) {
      rows += static_cast<int64_t>(shard.train.rows);
      return visit(shard.train);
    });
  };
  const auto on_step = [&](const models::LinearOptimum::Step& step) {
    on_step_(step, rows);
    return stop_.stop_requested() ? Cancelled("the training was stopped") : Status();
  };
  Outcome outcome;
  ASSIGN_OR_RETURN(outcome.found, search->Solve(pass, on_step));
  outcome.metrics =
      std::make_unique<models::Metrics>(models::TaskOf(job_.plan.model()), network->outputs());
  RETURN_IF_ERROR(Judge(*network, *loader, &outcome));
  outcome.rows_read = loader->rows_read();
  return outcome;
}

}  // namespace sluice::elastic
