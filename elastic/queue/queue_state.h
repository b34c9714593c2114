#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "elastic/ids.h"
#include "elastic/queue/finished_tasks.h"
#include "elastic/queue/ledger.h"
#include "elastic/queue/open_shard.h"
#include "elastic/queue/queue_record.h"
#include "elastic/queue/shard_order.h"
#include "elastic/queue/task.h"

namespace sluice::elastic {

struct QueueOptions {
  int64_t shards = 0;
  uint32_t epochs = 1;
  uint64_t seed = 0;
  bool shuffle = true;
  uint32_t lanes = 0;       // synchronous mode: shards of a round; 0 = asynchronous
  int64_t max_batches = 0;  // stop after exactly this many (steps of a round in synchronous mode)
  // How much of max_batches a task may use at a time, so that several workers share the rest.
  int64_t batches_per_task = 64;
  double lease_seconds = 10;
  bool journal = false;  // keep the transitions for TakeJournal
};

// The state of a TaskQueue: the open ranges of the current epoch, their holders, and the ledger. It
// changes only by QueueRecords. Memory grows with the open ranges and with 16 bytes a shard. Not
// thread-safe.
class QueueState {
 public:
  // A range of batches of a shard, by the shard's position in the epoch's order.
  struct Key {
    ShardPosition position;
    RangeId range;
    auto operator<=>(const Key&) const = default;
  };
  // An open range: handed out at least once, not yet committed to its end.
  struct Range {
    BatchIndex last = kToTheEnd;
    BatchIndex next;               // batches before it are committed
    int64_t rows = 0;              // of [first, next)
    Attempt attempt = kNoAttempt;  // of the last holder
    int64_t batches = 0;  // of the shard, and its rows, as reported by a holder; 0: not read yet
    int64_t shard_rows = 0;
    // Weighted sum of the losses of [first, next), and of the weights, as reported by the last
    // worker to commit any of them.
    double loss = 0, weight = 0;
    uint32_t expiries = 0;        // leases that ran out in a row without a commit
    std::vector<TaskId> holders;  // two when a straggler is raced
  };
  struct Lease {
    Task task;
    Incarnation owner = kNoIncarnation;
    Key key;
    int64_t rows_before = 0;  // of the range, when the task was handed out; likewise its sums
    double loss_before = 0, weight_before = 0;
    TaskReport last_report;  // the last report
    bool expired = false;
    TimePoint since{};     // handed out; after a takeover: when the new master began
    TimePoint progress{};  // the last progress
  };
  struct Holder {
    TimePoint deadline{};
    std::vector<TaskId> tasks;
  };

  explicit QueueState(const QueueOptions& options);

  // Internal if the record does not fit the state: it is from another job's journal, or damaged.
  Status Apply(const QueueRecord& record, TimePoint now);
  void Renew(Incarnation owner, TimePoint now);

  const QueueOptions& options() const { return options_; }
  const Ledger& ledger() const { return ledger_; }
  void ForgetReads() { ledger_.ForgetReads(); }
  void Expect(const Ledger::Known& known) { ledger_.Expect(known); }
  Epoch epoch() const { return epoch_; }
  ShardPosition cursor() const { return cursor_; }  // positions before it have been handed out
  RoundIndex round() const { return round_; }
  ShardPosition RoundEnd() const;
  int64_t shards_done() const { return done_; }
  int64_t batches_committed() const { return batches_committed_; }
  int64_t steps() const;  // committed, including those of the open round
  int64_t batches_granted() const { return batches_granted_; }
  TaskId next_task() const { return next_task_; }
  Term term() const { return term_; }
  ShardId ShardAt(ShardPosition position) const { return order_.At(position); }
  Attempt NextAttempt(const Range& range) const;
  bool GivenUp(ShardId shard) const { return given_up_.contains(shard); }
  bool Remembers(TaskId task) const { return done_tasks_.Has(task); }
  const std::map<Key, Range>& ranges() const { return ranges_; }
  const std::set<Key>& waiting() const { return waiting_; }  // ranges without a holder
  const std::unordered_map<TaskId, Lease>& leases() const { return leases_; }
  const std::unordered_map<Incarnation, Holder>& holders() const { return holders_; }
  const std::unordered_map<ShardId, std::vector<Incarnation>>& failures() const {
    return failures_;
  }
  // The rows of a shard in this epoch, if `range` of it has come to its end with `rows`; nullopt
  // while other ranges of it are open.
  std::optional<int64_t> RowsWhenClosed(const Key& range, int64_t rows) const;

 private:
  friend class QueueCodec;
  Status Take(const QueueRecord& record, TimePoint now);
  void SetLane(Task* task, ShardPosition position) const;
  Status Progress(const QueueRecord& record, TimePoint now);
  Status Finish(const QueueRecord& record);
  Status Split(const QueueRecord& record);
  Status Skip(const QueueRecord& record);
  Status NextEpoch();
  void Commit(Lease* lease, Range* range, const TaskReport& report);
  void CloseRange(const Key& key, const Range& range);
  void CloseShard(ShardPosition position);
  void DropLease(TaskId task);
  void WaitIfUnheld(const Key& key);
  void Unlist(const Lease& lease);
  void Grant(const Lease& lease, int sign);
  bool counts_grants() const { return options_.max_batches > 0 && options_.lanes == 0; }
  TimePoint Deadline(TimePoint now) const;
  ShardPosition RoundBegin() const { return ShardPosition(round_.value() * options_.lanes); }
  bool Exists(ShardPosition position) const {
    return position >= ShardPosition::First() && position < ShardPosition(options_.shards);
  }
  bool Exists(ShardId shard) const {
    return shard >= ShardId::First() && shard < ShardId(options_.shards);
  }

  QueueOptions options_;
  ShardOrder order_;
  Ledger ledger_;
  Epoch epoch_ = Epoch::First();
  ShardPosition cursor_;
  RoundIndex round_ = RoundIndex::First();
  int64_t round_done_ = 0;
  int64_t round_steps_ = 0;
  int64_t done_ = 0;
  TaskId next_task_ = TaskId::First();
  Term term_ = Term::First();
  int64_t batches_committed_ = 0;
  int64_t batches_granted_ = 0;  // to leases that have not used them yet (max_batches)

  std::map<Key, Range> ranges_;
  std::set<Key> waiting_;
  std::unordered_map<TaskId, Lease> leases_;
  std::unordered_map<Incarnation, Holder> holders_;
  std::unordered_map<ShardPosition, OpenShard> open_shards_;  // shards in several ranges
  std::unordered_set<ShardId> given_up_;
  std::unordered_map<ShardId, std::vector<Incarnation>> failures_;
  FinishedTasks done_tasks_;  // not saved: a takeover loses nothing by it
};

}  // namespace sluice::elastic
