#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "elastic/ids.h"
#include "models/model.h"

namespace sluice::elastic {

// Batches of a shard, made by another thread than the one that trains on them. They take a limited
// amount of memory: the training thread makes the rest itself. Used by one thread at a time.
class BatchesAhead {
 public:
  // From `first` on, of `batch_rows` rows each: `rows` in the order of `order`. `network` is used
  // by no other thread meanwhile.
  void Make(const models::FeatureBatch& rows, std::vector<uint32_t> order, size_t batch_rows,
            BatchIndex first, models::Network* network);
  // Moved out: for the lease. Empty: nothing was made.
  std::vector<uint32_t> TakeOrder() { return std::move(order_); }
  // Swaps the batch, and the ids of its tables' rows, with what was made. False: it was not made,
  // or has been taken.
  bool Take(BatchIndex batch, models::FeatureBatch* features, models::ParameterView* view);

 private:
  struct Batch {
    models::FeatureBatch features;
    models::ParameterView view;
    bool there = false;
  };
  std::vector<uint32_t> order_;
  BatchIndex first_;
  std::vector<Batch> batches_;
};

}  // namespace sluice::elastic
