#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "elastic/ids.h"
#include "elastic/queue/ledger.h"
#include "elastic/queue/queue_record.h"
#include "elastic/queue/queue_state.h"
#include "elastic/queue/task.h"
#include "elastic/queue/work_stealing.h"

namespace sluice::elastic {

// Decides which worker trains which rows: the training tasks of a job and their leases. Its
// decisions become QueueRecords, which alone change the QueueState underneath. A pure state
// machine: time is passed in; its only outputs are answers and the journal. Not thread-safe.
class TaskQueue {
 public:
  using Options = QueueOptions;
  using Totals = Ledger::Totals;
  explicit TaskQueue(const Options& options) : state_(options) {}
  explicit TaskQueue(QueueState state) : state_(std::move(state)) {}

  // The next task of the epoch, requeued ones first, in their original order; nullopt if none can
  // be handed out now (everything is leased, or the epoch or the budget is over).
  std::optional<Task> Take(Incarnation owner, TimePoint now);

  // The same, of shards that not every owner should have: the one of the least cost; nullopt: it is
  // not for this owner now. Not in synchronous mode.
  using Cost = std::function<std::optional<int>(ShardId)>;
  std::optional<Task> TakeBest(Incarnation owner, const Cost& cost, TimePoint now);

  // For an idle worker when Take has nothing: work of another worker. Either the second half of the
  // range that will take longest, which becomes a range of its own (the holder learns of it with
  // its next report), or a second copy of a late task: of two commits of a batch the first counts,
  // and the first copy to reach the end has finished the task (`work_stealing` chooses).
  std::optional<Task> Steal(Incarnation owner, TimePoint now);

  enum class Answer {
    kAccepted,
    kDuplicate,  // reported before: nothing changed
    kRejected,   // not this worker's task (any more): the worker must drop it
    kCut,        // it ends before what was reported (LastBatch): nothing changed, to be reported
                 // again
  };
  // An error: the shard does not have the same rows as before.
  Result<Answer> Report(Incarnation owner, const TaskReport& report, TimePoint now);
  // Where a leased task ends now.
  BatchIndex LastBatch(TaskId task) const;
  void Renew(Incarnation owner, TimePoint now) { state_.Renew(owner, now); }

  // A lost or leaving worker: its uncommitted work goes back to the front. No shard is charged.
  // Returns the tasks that were requeued.
  std::vector<Task> ReleaseAll(Incarnation owner);
  // Leases that their owner does not know of, because the answer that carried them was lost.
  std::vector<Task> ReleaseOthers(Incarnation owner, const std::vector<TaskId>& held);
  // One task returned by its running owner.
  std::optional<Task> Release(Incarnation owner, TaskId task);
  // Tasks whose lease has run out go back to the front. The next lease of the same range is twice
  // as long, until a part of it is committed, so that even the slowest work ends.
  std::vector<Task> ExpireLeases(TimePoint now);

  // Code failed on the shard (a crash of the worker itself, not a loss of it). True when the shard
  // has now failed kFailuresToQuarantine times on at least two workers: give it up.
  static constexpr int kFailuresToQuarantine = 3;
  bool ChargeFailure(Incarnation owner, ShardId shard);
  // Code has failed on one of these tasks' shards, or on the one that Take would hand out next:
  // then tasks are handed out one at a time, so that the next failure identifies the shard.
  bool Suspects(const std::vector<TaskId>& held) const;
  // Gives up the rest of a shard, in this and all later epochs; it must not be leased. Asynchronous
  // mode only, because a round needs all of its lanes.
  std::vector<Ledger::Skipped> Skip(ShardId shard, TimePoint now);

  bool EpochDone() const;
  bool BudgetSpent() const;
  bool LastEpoch() const { return state_.epoch() >= Epoch(state_.options().epochs); }
  void StartNextEpoch();

  Epoch epoch() const { return state_.epoch(); }
  int64_t shards() const { return state_.options().shards; }
  int64_t shards_done() const { return state_.shards_done(); }
  size_t leased() const;
  // How many tasks Take could hand out now.
  int64_t ready() const;

  const Totals& totals() const { return state_.ledger().totals(); }
  const Ledger& ledger() const { return state_.ledger(); }
  int64_t batches_committed() const { return state_.batches_committed(); }
  // Committed steps of the optimizer: batches, or steps that have closed over their lanes.
  int64_t steps() const { return state_.steps(); }
  const std::vector<int64_t>& rows_per_epoch() const { return ledger().rows_per_epoch(); }
  int64_t RowsOfSnapshot() const { return ledger().RowsOfSnapshot(); }
  // As of Ledger.
  void Expect(const Ledger::Known& known) { state_.Expect(known); }
  // Fails unless every shard has been committed `epochs run` times, with the same rows each time.
  Status CheckLedger() const;

  // The transitions since the last call (Options::journal).
  std::vector<QueueRecord> TakeJournal() { return std::exchange(journal_, {}); }
  Status Replay(const QueueRecord& record, TimePoint now) { return state_.Apply(record, now); }
  const QueueState& state() const { return state_; }
  // Another master continues from here: its tasks and attempts are above all earlier ones. `alive`:
  // workers whose leases stay; the tasks of others are requeued first.
  void TakeOver(Term term, const std::vector<Incarnation>& alive, TimePoint now);

 private:
  void Do(const QueueRecord& record, TimePoint now);
  // How many batches the next task may have; 0: none now.
  static constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
  int64_t BatchLimit() const;
  Task HandOut(Incarnation owner, const QueueState::Key& key, Attempt attempt, int64_t limit,
               TimePoint now);
  std::optional<Task> TakeFresh(Incarnation owner, TimePoint now);
  // Every shard of the epoch waits for an owner.
  void OpenAll(TimePoint now);
  Task Requeue(TaskId task, QueueRecord::Kind how);
  std::vector<Task> RequeueAll(std::vector<TaskId> tasks, QueueRecord::Kind how);
  Status CheckRows(const QueueState::Lease& lease, const TaskReport& report) const;

  QueueState state_;
  std::vector<QueueRecord> journal_;
  TaskTimes times_;
};

}  // namespace sluice::elastic
