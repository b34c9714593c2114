#pragma once

#include <memory>

#include "base/status.h"
#include "elastic/worker/worker.h"
#include "elastic/worker/worker_tasks_internal.h"

namespace sluice::elastic {

// A strategy of a worker's training; strategies differ only in this. One thread.
class TrainingLoop {
 public:
  virtual ~TrainingLoop() = default;
  // Works for a while (a shard, a step, a round); called until the tasks are finished. An error
  // ends the worker.
  virtual Status Advance() = 0;
};

// asynchronous_loop.cc
std::unique_ptr<TrainingLoop> MakeAsynchronousLoop(WorkerTasks& tasks);
// The same, but no batch begins until the slowest worker is close enough (bounded staleness).
std::unique_ptr<TrainingLoop> MakeBoundedLoop(WorkerTasks& tasks);
// synchronous_loop.cc
std::unique_ptr<TrainingLoop> MakeSynchronousLoop(WorkerTasks& tasks);
// all_reduce_loop.cc
Result<std::unique_ptr<TrainingLoop>> MakeAllReduceLoop(WorkerTasks& tasks,
                                                        const Worker::Replica& replica);

// pass_loop.cc
Result<std::unique_ptr<TrainingLoop>> MakePassLoop(WorkerTasks& tasks, const Worker::Job& job);

}  // namespace sluice::elastic
