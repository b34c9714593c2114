#pragma once

#include <cstdint>
#include <deque>
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

namespace sluice::elastic {

// Who trains which rows: the training tasks of a job and their leases. Decides; what it has decided
// becomes QueueRecords, which alone change the QueueState underneath. A pure state machine: time
// comes in, nothing goes out but answers and the journal. Not thread-safe.
class TaskQueue {
 public:
  using Options = QueueOptions;
  using Totals = Ledger::Totals;
  explicit TaskQueue(const Options& options) : state_(options) {}
  explicit TaskQueue(QueueState state) : state_(std::move(state)) {}

  // The next task of the epoch, requeued ones first, in their original order; nullopt when nothing
  // can be handed out now (everything is leased, or the epoch or the budget is over).
  std::optional<Task> Take(Incarnation owner, TimePoint now);

  // For a worker that has nothing to do when Take has nothing: work of someone else. Either the
  // second half of the range that will take longest, which becomes a range of its own (the holder
  // hears of it with its next report), or a second copy of a task that is late: the first to commit
  // a batch has committed it, the first at the end has finished the task. A task is late after 1.5
  // times the median of those before it; in synchronous mode, when the step has waited for its lane
  // for kStallSeconds.
  std::optional<Task> Steal(Incarnation owner, TimePoint now);
  static constexpr double kLateFactor = 1.5;
  static constexpr double kStallSeconds = 1;
  // Reading half a shard again costs something: less than this is not worth it.
  static constexpr int64_t kBatchesToSplit = 4;
  static constexpr double kSecondsToSplit = 0.3;

  enum class Answer {
    kAccepted,
    kDuplicate,  // said before: nothing changed
    kRejected,   // not this worker's task (any more): the worker must drop it
    kCut,        // it ends before what was reported (LastBatch): nothing changed, to be said again
  };
  // An error: the shard does not have the rows that it had before.
  Result<Answer> Report(Incarnation owner, const TaskReport& report, TimePoint now);
  // Where a task that is held ends now.
  BatchIndex LastBatch(TaskId task) const;
  void Renew(Incarnation owner, TimePoint now) { state_.Renew(owner, now); }

  // A lost or leaving worker: what it has not committed goes back to the front. Never charged.
  // Returns the tasks that were requeued.
  std::vector<Task> ReleaseAll(Incarnation owner);
  // Leases that their owner does not know of: the answer that carried them was lost on the way.
  std::vector<Task> ReleaseOthers(Incarnation owner, const std::vector<TaskId>& held);
  // One task handed back by its living owner.
  std::optional<Task> Release(Incarnation owner, TaskId task);
  // Tasks whose lease has run out go back to the front. The next lease of the same range is twice
  // as long, until something of it is committed: no work is too slow to end.
  std::vector<Task> ExpireLeases(TimePoint now);

  // Code failed on the shard (a crash of the worker itself, not a loss of it). True when the shard
  // has now failed kFailuresToQuarantine times on at least two workers: give it up.
  static constexpr int kFailuresToQuarantine = 3;
  bool ChargeFailure(Incarnation owner, ShardId shard);
  // Code has failed on one of these tasks' shards, or on what Take would hand out next: then one at
  // a time, so that the next failure names the right one.
  bool Suspects(const std::vector<TaskId>& held) const;
  // Gives up what is left of a shard, in this epoch and in those that come; it must not be held.
  // Asynchronous mode only: a round of lanes closes over all of them.
  std::vector<Ledger::Skipped> Skip(ShardId shard, TimePoint now);

  bool EpochDone() const;
  bool BudgetSpent() const;
  bool LastEpoch() const { return state_.epoch() >= Epoch(state_.options().epochs); }
  void StartNextEpoch();

  Epoch epoch() const { return state_.epoch(); }
  int64_t shards() const { return state_.options().shards; }
  int64_t shards_done() const { return state_.shards_done(); }
  size_t leased() const;
  // Tasks that Take could hand out one after another now.
  int64_t ready() const;

  const Totals& totals() const { return state_.ledger().totals(); }
  const Ledger& ledger() const { return state_.ledger(); }
  int64_t batches_committed() const { return state_.batches_committed(); }
  // Steps of the optimizer that are committed: batches, or steps that have closed over their lanes.
  int64_t steps() const { return state_.steps(); }
  const std::vector<int64_t>& rows_per_epoch() const { return ledger().rows_per_epoch(); }
  int64_t RowsOfSnapshot() const { return ledger().RowsOfSnapshot(); }
  // Fails unless every shard has been committed `epochs run` times, with the same rows each time.
  Status CheckLedger() const;

  // The transitions since the last call (Options::journal).
  std::vector<QueueRecord> TakeJournal() { return std::exchange(journal_, {}); }
  Status Replay(const QueueRecord& record, TimePoint now) { return state_.Apply(record, now); }
  const QueueState& state() const { return state_; }
  // Another master goes on from here: its tasks and attempts are above those of any before it.
  // `alive`: whose leases stay; what others held is requeued first.
  void TakeOver(Term term, const std::vector<Incarnation>& alive, TimePoint now);

 private:
  void Do(const QueueRecord& record, TimePoint now);
  // How many batches the next task may have; 0: none now.
  static constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
  int64_t BatchLimit() const;
  Task HandOut(Incarnation owner, const QueueState::Key& key, uint32_t attempt, int64_t limit,
               TimePoint now);
  Task Requeue(TaskId task, QueueRecord::Kind how);
  std::vector<Task> RequeueAll(std::vector<TaskId> tasks, QueueRecord::Kind how);
  std::optional<TaskId> LaggingLane(Incarnation owner, TimePoint now) const;
  Status CheckRows(const QueueState::Lease& lease, const TaskReport& report) const;
  double MedianSeconds() const;

  QueueState state_;
  std::vector<QueueRecord> journal_;
  std::deque<double> seconds_;  // that the last tasks took
};

}  // namespace sluice::elastic
