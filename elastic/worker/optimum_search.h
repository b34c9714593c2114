#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <vector>

#include "base/status.h"
#include "elastic/worker/shard_rows.h"
#include "elastic/worker/worker.h"
#include "models/linear_optimum.h"

namespace sluice::models {
class Metrics;
}

namespace sluice::elastic {

// Finds a linear model's optimum: reads the rows shard after shard, in the shards' order, and keeps
// them in memory if they are needed again. Belongs to one thread.
class OptimumSearch {
 public:
  struct Outcome {
    models::LinearOptimum::Found found;
    std::unique_ptr<models::Metrics> metrics;  // of the validation rows
    int64_t validation_rows = 0;
    int64_t rows_read = 0;
    Outcome();
    Outcome(Outcome&&) noexcept;
    ~Outcome();
  };
  // Everything in `job` must outlive it. `stop` ends it with Cancelled.
  OptimumSearch(const Worker::Job& job, std::stop_token stop);

  // When requested, the search ends after the current step.
  void FinishOn(std::stop_token finish) { finish_ = std::move(finish); }
  // Called after some rows with the number read so far, and after each step also with the number of
  // training rows.
  void OnRead(std::function<void(int64_t)> on_read) { on_read_ = std::move(on_read); }
  void OnStep(std::function<void(const models::LinearOptimum::Step&, int64_t)> on_step) {
    on_step_ = std::move(on_step);
  }
  // Once.
  Result<Outcome> Run();
  // The same without validation rows; also scores each row by a search that has not seen its fold,
  // of that many folds (a random plan::Split). The rows are read once for all searches. Call once.
  struct HeldOut {
    size_t outputs = 0;
    std::vector<double> scores;  // rows x outputs
    std::vector<double> labels;  // FeatureBatch::OwnLabels
    std::vector<float> weights;
  };
  Result<Outcome> RunByFolds(uint32_t folds, HeldOut* held_out);

 private:
  using Visitor = std::function<Status(int, const ShardRows&)>;
  using Fold = std::vector<models::FeatureBatch>;  // by shard
  Result<std::unique_ptr<ShardLoader>> Open(const catalog::DatasetSpec& dataset,
                                            const models::Network& network,
                                            const ShardLoader::Options& options) const;
  Status ForEach(ShardLoader& loader, const catalog::DatasetSpec& dataset,
                 const Visitor& visit) const;
  Status Judge(models::Network& network, ShardLoader& loader, Outcome* outcome) const;
  Status Predict(models::Network& network, const models::NetworkWeights& weights,
                 const models::FeatureBatch& rows,
                 const std::function<void(const std::vector<double>&, const models::FeatureBatch&)>&
                     take) const;
  Result<models::LinearOptimum::Found> Search(ShardLoader& loader) const;
  Result<models::LinearOptimum::Found> SearchWithout(size_t fold,
                                                     const std::vector<Fold>& folds) const;
  Result<std::vector<Fold>> CutIntoFolds(uint32_t folds, ShardLoader& loader) const;

  const Worker::Job job_;
  const std::stop_token stop_;
  std::stop_token finish_;
  std::function<void(int64_t)> on_read_ = [](int64_t) {};
  std::function<void(const models::LinearOptimum::Step&, int64_t)> on_step_ =
      [](const models::LinearOptimum::Step&, int64_t) {};
};

}  // namespace sluice::elastic
