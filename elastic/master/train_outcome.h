#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "models/model.h"

namespace sluice::elastic {

// The result of a training.
struct TrainOutcome {
  models::NetworkWeights weights;
  std::string trees;  // instead of weights: boosted trees, as they are stored
  std::string Stored() const { return trees.empty() ? models::SaveWeights(weights) : trees; }
  void ForgetModel() {
    weights = {};
    trees.clear();
  }
  std::vector<std::pair<std::string, double>>
      metrics;              // on the validation rows; empty without a split
  double loss = 0;          // mean training loss of the last epoch
  uint32_t epochs = 0;      // actually run (early stopping)
  uint32_t best_epoch = 0;  // the epoch of these weights, as chosen by validation; 0: the last
  // By epoch: how often the learning rate had been lowered before it.
  std::vector<uint32_t> rate_cuts;
  int64_t rows_per_epoch = 0;  // training rows; validation rows not counted
  int64_t validation_rows = 0;
  int64_t rows_trained = 0;  // rows_per_epoch x epochs, by the ledger
  int64_t rows_read = 0, rows_retried = 0, rows_skipped = 0;
};

}  // namespace sluice::elastic
