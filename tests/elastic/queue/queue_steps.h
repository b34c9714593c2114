#pragma once

#include "elastic/queue/queue_codec_internal.h"
#include "elastic/queue/task_queue.h"

namespace sluice::elastic {

inline constexpr TimePoint kTimeZero{0};

inline TimePoint At(double seconds) {
  return std::chrono::duration_cast<TimePoint>(std::chrono::duration<double>(seconds));
}

inline TaskQueue::Options QueueOf(int64_t shards, uint32_t epochs = 1) {
  TaskQueue::Options options;
  options.shards = shards;
  options.epochs = epochs;
  options.shuffle = false;
  return options;
}

inline TaskReport Upto(const Task& task, int64_t batch, int64_t rows) {
  TaskReport report;
  report.task = task.id;
  report.next_batch = BatchIndex(batch);
  report.rows = rows;
  return report;
}

inline TaskReport Done(const Task& task, int64_t batch, int64_t rows) {
  TaskReport report = Upto(task, batch, rows);
  report.done = true;
  report.end_of_shard = true;
  return report;
}

// The report of a worker that has read a shard of `batches`, with ten rows a batch.
inline TaskReport Trained(const Task& task, int64_t batch, int64_t batches) {
  TaskReport report = Upto(task, batch, 10 * (BatchIndex(batch) - task.first_batch));
  report.batches = batches;
  report.shard_rows = 10 * batches;
  report.done = report.next_batch >= std::min(EndOf(batches), task.last_batch);
  report.end_of_shard = report.done && batch >= batches;
  return report;
}

// Its state in stored form.
inline QueueSave Save(const TaskQueue& queue) {
  QueueSave save;
  QueueCodec::Write(queue.state(), &save);
  return save;
}

}  // namespace sluice::elastic
