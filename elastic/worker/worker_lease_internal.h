#pragma once

#include <memory>
#include <vector>

#include "elastic/worker/worker.h"

namespace sluice::elastic {

struct Worker::Lease {
  Task task;
  std::shared_ptr<const ShardRows> rows;
  std::vector<uint32_t> order;  // of the training rows in this epoch
  int64_t batches = 0;          // of the shard
  int64_t next = 0;             // the batch to train next
  int64_t rows_read_before = 0;
  TaskReport report;

  int64_t end() const { return std::min(batches, task.last_batch); }
  bool done() const { return next >= end(); }
};

}  // namespace sluice::elastic
