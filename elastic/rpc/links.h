#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "elastic/parameters/parameter_shard.h"
#include "elastic/queue/task.h"
#include "models/model.h"

namespace sluice::elastic {

// A worker's connection to its master: a direct call in one process, gRPC between processes. One
// thread.
class MasterLink {
 public:
  struct Answer {
    enum class Kind {
      kTask,
      kNothing,   // not now: ask again
      kFinished,  // the job is over: exit
    };
    Kind kind = Kind::kNothing;
    Task task;
    std::vector<Task> further = {};  // of a pass: other shards, to be reported together
  };
  virtual ~MasterLink() = default;

  // `waiting`: the worker is idle, so the call may wait for a task. Otherwise it asks ahead, to
  // read one shard while it trains on another.
  virtual Result<Answer> Take(bool waiting) = 0;
  virtual Result<LeaseStatus> Report(const TaskReport& report) = 0;
  // Bounded staleness: whether this worker, which has pushed this many batches since its start, may
  // begin another. False, after a wait: not yet, ask again.
  virtual Result<bool> MayBegin(int64_t pushed) = 0;
  // The task cannot be done: code or data are wrong. Ends the job if that is final.
  virtual Status Fail(const Task& task, const Status& cause) = 0;
  // The worker no longer works on the task, and reports that with its next request.
  virtual void Abandon(TaskId task) = 0;
  // Returns all tasks before leaving.
  virtual void Leave() = 0;
};

// The tasks of a worker, as known to its link to the master.
class HeldTasks {
 public:
  const std::vector<TaskId>& ids() const { return ids_; }
  void Took(const Result<MasterLink::Answer>& answer) {
    if (answer.ok() && answer->kind == MasterLink::Answer::Kind::kTask) {
      ids_.push_back(answer->task.id);
      for (const Task& task : answer->further) {
        ids_.push_back(task.id);
      }
    }
  }
  void Reported(const TaskReport& report, const Result<LeaseStatus>& lease_status) {
    if (!lease_status.ok()) {
      return;
    }
    const bool counted = report.next_batch <= lease_status->last_batch;
    if (!lease_status->mine || (report.done && counted)) {
      Drop(report.task);
      for (const TaskReport& merged : report.merged) {
        Drop(merged.task);
      }
    }
  }
  void Drop(TaskId task) { std::erase(ids_, task); }

 private:
  std::vector<TaskId> ids_;
};

// One batch's gradient, on its way to the parameters.
struct BatchPush {
  BatchIdentity batch;
  double weight = 0;
  const models::ParameterView* view = nullptr;  // from which it was computed
  const models::Gradient* gradient = nullptr;
};

// A worker's connection to the parameters, on any number of servers. One thread.
class ParameterLink {
 public:
  virtual ~ParameterLink() = default;

  // view->tables[].ids select the rows; fills in the values and the dense pointers, which stay
  // valid until the next call. DeadlineExceeded in synchronous mode: the step is not open yet, ask
  // again.
  virtual Status Pull(const BatchIdentity& batch, Purpose purpose, models::ParameterView* view) = 0;
  // Every server has the batch when this returns OK. Aborted: the lease now belongs to another
  // worker.
  virtual Status Push(const BatchIdentity& batch, double weight, const models::ParameterView& view,
                      const models::Gradient& gradient) = 0;
  // Pushes all of these in order, then pulls for the next batch; in one exchange if that is
  // cheaper. Several batches belong to different lanes of one step.
  // `meanwhile` runs once, while the answer is awaited if there is anything to wait for.
  virtual Status PushAndPull(std::span<const BatchPush> pushes, const BatchIdentity& next,
                             models::ParameterView* next_view,
                             const std::function<void()>& meanwhile) {
    RETURN_IF_ERROR(PushAll(pushes));
    meanwhile();
    return Pull(next, Purpose::kStep, next_view);
  }
  virtual Status PushAll(std::span<const BatchPush> pushes) {
    for (const BatchPush& push : pushes) {
      RETURN_IF_ERROR(Push(push.batch, push.weight, *push.view, *push.gradient));
    }
    return Status();
  }
  // Synchronous mode: the lane has no batch for this step.
  virtual Status PushEnd(const BatchIdentity& batch) = 0;
  // Of the parameters returned by the last Pull, by partition.
  virtual std::vector<int64_t> Versions() const = 0;
  // The batches of the shard before this one are applied on every server.
  virtual Result<BatchIndex> AppliedBatches(Epoch epoch, ShardId shard) = 0;
};

}  // namespace sluice::elastic
