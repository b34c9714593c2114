#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "elastic/ids.h"
#include "models/model.h"

namespace sluice::elastic {

// Batches of a shard that a thread makes which does not train them. Their number is limited by
// their memory: the trainer makes the others itself. One thread at a time.
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

// The rows of one batch of a shard, in the order of `order`.
void GatherBatch(const models::FeatureBatch& rows, std::span<const uint32_t> order,
                 size_t batch_rows, BatchIndex batch, models::FeatureBatch* out);

}  // namespace sluice::elastic
