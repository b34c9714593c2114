#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "elastic/shard_order.h"
#include "elastic/task.h"

namespace sluice::elastic {

// Who trains which rows: the training tasks of a job, their leases, and the ledger of what has been
// committed. A pure state machine: time comes in, nothing goes out but answers. Not thread-safe.
class TaskQueue {
 public:
  struct Options {
    int64_t shards = 0;
    uint32_t epochs = 1;
    uint64_t seed = 0;
    bool shuffle = true;
    uint32_t lanes = 0;       // synchronous mode: shards of a round; 0 = asynchronous
    int64_t max_batches = 0;  // stop after exactly so many (steps of a round in synchronous mode)
    // What a task may use of max_batches at a time, so that several workers share the rest.
    int64_t batches_per_task = 64;
    double lease_seconds = 10;
  };
  explicit TaskQueue(const Options& options);

  // The next task of the epoch, requeued ones first, in their original order; nullopt when nothing
  // can be handed out now (everything is leased, or the epoch or the budget is over).
  std::optional<Task> Take(Incarnation owner, TimePoint now);

  enum class Answer {
    kAccepted,
    kDuplicate,  // said before: nothing changed
    kRejected,   // not this worker's task (any more): the worker must drop it
  };
  // An error: the shard does not have the rows that it had in an earlier epoch.
  Result<Answer> Report(Incarnation owner, const TaskReport& report, TimePoint now);
  void Renew(Incarnation owner, TimePoint now);

  // A lost or leaving worker: what it has not committed goes back to the front. Never charged.
  // Returns the tasks that were requeued.
  std::vector<Task> ReleaseAll(Incarnation owner);
  // Leases that their owner does not know of: the answer that carried them was lost on the way.
  std::vector<Task> ReleaseOthers(Incarnation owner, const std::vector<int64_t>& held);
  // One task handed back by its living owner.
  std::optional<Task> Release(Incarnation owner, int64_t task);
  // Tasks whose lease has run out go back to the front.
  std::vector<Task> ExpireLeases(TimePoint now);

  // Code failed on the shard (a crash of the worker itself, not a loss of it). True when the shard
  // has now failed kFailuresToQuarantine times on at least two workers: give it up.
  static constexpr int kFailuresToQuarantine = 3;
  bool ChargeFailure(Incarnation owner, int64_t shard);

  bool EpochDone() const;
  bool BudgetSpent() const;
  bool LastEpoch() const { return epoch_ >= options_.epochs; }
  void StartNextEpoch();

  uint32_t epoch() const { return epoch_; }
  int64_t shards() const { return options_.shards; }
  int64_t shards_done() const { return done_; }
  size_t leased() const { return leases_.size(); }
  size_t LeasedBy(Incarnation owner) const;
  // Tasks that Take could hand out one after another now.
  int64_t ready() const;

  // The ledger.
  struct Totals {
    int64_t rows = 0;  // committed
    int64_t rows_read = 0;
    int64_t rows_retried = 0;
    double loss = 0;  // weighted sum, and the sum of the weights
    double weight = 0;
  };
  const Totals& totals() const { return totals_; }
  int64_t batches_committed() const { return batches_committed_; }
  const std::vector<int64_t>& rows_per_epoch() const { return rows_per_epoch_; }
  // Training rows of the snapshot: known once an epoch is done.
  int64_t RowsOfSnapshot() const;
  // Fails unless every shard has been committed `epochs run` times, with the same rows each time.
  Status CheckLedger() const;

 private:
  struct Pending {
    int64_t first_batch = 0;
    int64_t rows = 0;      // committed by earlier leases of this shard in this epoch
    uint32_t attempt = 0;  // of the last lease
    // A lease that ran out: its owner may still come back for it, before anyone else takes it.
    Incarnation expired_owner = 0;
    int64_t expired_first_batch = 0;
    TaskReport expired_report;
  };
  struct Lease {
    Task task;
    Incarnation owner = 0;
    int64_t position = 0;
    int64_t rows_before = 0;  // of earlier leases
    TaskReport said;          // the last report: what is committed
    TimePoint deadline{};
  };

  Task MakeTask(int64_t position, const Pending& pending, int64_t limit);
  // How many batches the next task may have; 0: none now.
  int64_t BatchLimit() const;
  Task Requeue(std::unordered_map<int64_t, Lease>::iterator lease, bool expired);
  bool Revive(Incarnation owner, int64_t task, TimePoint now);
  bool Commit(Lease* lease, const TaskReport& report);
  Status Complete(const Lease& lease, bool end_of_shard);
  void CloseRound();
  int64_t RoundEnd() const;
  TimePoint Deadline(TimePoint now) const;

  const Options options_;
  ShardOrder order_;
  uint32_t epoch_ = 1;
  int64_t cursor_ = 0;  // positions before it have been handed out at least once
  int64_t round_ = 0;
  int64_t round_done_ = 0;
  int64_t round_steps_ = 0;
  int64_t done_ = 0;
  int64_t next_task_ = 1;
  std::map<int64_t, Pending> requeued_;  // by position: their original order
  std::unordered_map<int64_t, Lease> leases_;
  std::deque<int64_t> recently_done_;  // task ids: a client's retry is answered from here

  Totals totals_;
  int64_t batches_committed_ = 0;
  int64_t batches_granted_ = 0;  // to leases that have not used them yet (max_batches)
  std::vector<int64_t> rows_per_epoch_;
  std::vector<int64_t> shard_rows_;  // -1: not known yet
  std::unordered_map<int64_t, std::vector<Incarnation>> failures_;
};

}  // namespace sluice::elastic
