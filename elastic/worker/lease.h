#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "elastic/parameters/parameter_rules.h"
#include "elastic/queue/task.h"
#include "elastic/worker/batches_ahead.h"
#include "elastic/worker/shard_rows.h"

namespace sluice::elastic {

// A training task that this worker holds, the rows of its shard, and its progress.
struct Lease {
  Task task;
  std::shared_ptr<const ShardRows> rows;  // null before they have been read
  std::vector<uint32_t> order;            // of the training rows in this epoch
  size_t batch_rows = 0;
  int64_t batches = 0;           // of the shard
  BatchIndex next;               // the batch to train next
  int64_t rows_read_before = 0;  // rows that the loader had read when it began this shard
  TaskReport report;
  std::shared_ptr<BatchesAhead> ahead;  // null: nobody makes batches for this one

  explicit Lease(Task taken);
  // The rows were read before the master had dealt this task for their shard.
  void Become(Task dealt);
  // The rows have been read: fixes the order of the batches. `rows_read`: from the database, for
  // them.
  void Begin(std::shared_ptr<const ShardRows> read, std::vector<uint32_t> row_order,
             size_t rows_per_batch, int64_t rows_read);

  BatchIndex end() const { return std::min(EndOf(batches), task.last_batch); }
  bool done() const { return next >= end(); }

  BatchIdentity Identity(BatchIndex batch) const;
  void Gather(BatchIndex batch, models::FeatureBatch* out) const;
  // The batch, and the ids of the tables' rows that it needs; taken from those made ahead if it is
  // there, else made by `network`.
  void MakeBatch(BatchIndex batch, models::Network* network, models::FeatureBatch* features,
                 models::ParameterView* view);
  uint64_t StepSeed() const;  // of the next batch
  // The next batch has been trained. Fails if its loss is NaN: operators give that without a
  // gradient, too.
  Status Count(const models::LossSum& loss);
  // The task now ends at `last_batch`, but more had been counted: batches beyond it belong to
  // another worker.
  void CutShort(BatchIndex last_batch);
};

// A training whose loss is no number has diverged, or its network cannot compute these rows.
Status CheckLoss(double loss, const BatchIdentity& batch);

}  // namespace sluice::elastic
