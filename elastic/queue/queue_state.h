#pragma once

#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "elastic/queue/ledger.h"
#include "elastic/queue/queue_record.h"
#include "elastic/queue/shard_order.h"
#include "elastic/queue/task.h"

namespace sluice::elastic {

// So many masters a job may have: their tasks are numbered apart.
inline constexpr int64_t kMostTerms = int64_t{1} << 20;

struct QueueOptions {
  int64_t shards = 0;
  uint32_t epochs = 1;
  uint64_t seed = 0;
  bool shuffle = true;
  uint32_t lanes = 0;       // synchronous mode: shards of a round; 0 = asynchronous
  int64_t max_batches = 0;  // stop after exactly so many (steps of a round in synchronous mode)
  // What a task may use of max_batches at a time, so that several workers share the rest.
  int64_t batches_per_task = 64;
  double lease_seconds = 10;
  bool journal = false;  // keep the transitions for TakeJournal
};

// What a TaskQueue knows: the open ranges of the current epoch, who holds them, and the ledger. It
// changes by QueueRecords only, and never by itself. Memory grows with the open ranges and with 16
// bytes a shard. Not thread-safe.
class QueueState {
 public:
  // A range of batches of a shard, by the shard's position in the epoch's order.
  struct Key {
    int64_t position = 0;
    int64_t first = 0;
    auto operator<=>(const Key&) const = default;
  };
  // An open range: handed out at least once, not yet committed to its end.
  struct Range {
    int64_t last = Task::kToTheEnd;
    int64_t next = 0;      // batches before it are committed
    int64_t rows = 0;      // of [first, next)
    uint32_t attempt = 0;  // of the last holder
    int64_t batches = 0;   // of the shard, and its rows: as a holder said; 0: nobody has read it
    int64_t shard_rows = 0;
    uint32_t expiries = 0;         // leases that ran out in a row, nothing being committed
    std::vector<int64_t> holders;  // tasks; two when a straggler is raced
  };
  struct Lease {
    Task task;
    Incarnation owner = 0;
    Key key;
    int64_t rows_before = 0;  // of the range, when the task was handed out
    TaskReport said;          // the last report
    bool expired = false;
    TimePoint since{};     // handed out; after a takeover: when the new master began
    TimePoint progress{};  // the last news
  };
  struct Holder {
    TimePoint deadline{};
    std::vector<int64_t> tasks;
  };

  explicit QueueState(const QueueOptions& options);

  // Internal when the record does not fit the state: it is from another job's journal, or damaged.
  Status Apply(const QueueRecord& record, TimePoint now);
  void Renew(Incarnation owner, TimePoint now);

  const QueueOptions& options() const { return options_; }
  const Ledger& ledger() const { return ledger_; }
  void ForgetReads() { ledger_.ForgetReads(); }
  uint32_t epoch() const { return epoch_; }
  int64_t cursor() const { return cursor_; }  // positions before it have been handed out
  int64_t round() const { return round_; }
  int64_t RoundEnd() const;
  int64_t shards_done() const { return done_; }
  int64_t batches_committed() const { return batches_committed_; }
  int64_t steps() const;  // committed, with those of the open round
  int64_t batches_granted() const { return batches_granted_; }
  int64_t next_task() const { return next_task_; }
  int64_t term() const { return term_; }
  int64_t ShardAt(int64_t position) const { return order_.At(position); }
  uint32_t NextAttempt(const Range& range) const;
  bool GivenUp(int64_t shard) const { return given_up_.contains(shard); }
  bool Remembers(int64_t task) const { return done_tasks_.contains(task); }
  const std::map<Key, Range>& ranges() const { return ranges_; }
  const std::set<Key>& waiting() const { return waiting_; }  // ranges that nobody works on
  const std::unordered_map<int64_t, Lease>& leases() const { return leases_; }
  const std::unordered_map<Incarnation, Holder>& holders() const { return holders_; }
  const std::unordered_map<int64_t, std::vector<Incarnation>>& failures() const {
    return failures_;
  }
  // The rows of a shard in this epoch, when `range` of it has come to its end with `rows`; nullopt
  // while other ranges of it are open.
  std::optional<int64_t> RowsWhenClosed(const Key& range, int64_t rows) const;

 private:
  friend class QueueCodec;
  struct OpenShard {
    int64_t rows = 0;        // of ranges that are closed
    bool cut_short = false;  // by max_batches: its rows are not known
    std::optional<Ledger::Skipped> skipped;
  };
  Status Take(const QueueRecord& record, TimePoint now);
  void SetLane(Task* task, int64_t position) const;
  Status Progress(const QueueRecord& record, TimePoint now);
  Status Finish(const QueueRecord& record);
  Status Split(const QueueRecord& record);
  Status Skip(const QueueRecord& record);
  Status NextEpoch();
  void Commit(Lease* lease, Range* range, const TaskReport& report);
  void CloseRange(const Key& key, const Range& range);
  void CloseShard(int64_t position);
  void DropLease(int64_t task);
  void WaitIfUnheld(const Key& key);
  void Unlist(const Lease& lease);
  void Remember(int64_t task);
  void Grant(const Lease& lease, int sign);
  bool counts_grants() const { return options_.max_batches > 0 && options_.lanes == 0; }
  TimePoint Deadline(TimePoint now) const;
  bool IsPosition(int64_t number) const { return number >= 0 && number < options_.shards; }

  QueueOptions options_;
  ShardOrder order_;
  Ledger ledger_;
  uint32_t epoch_ = 1;
  int64_t cursor_ = 0;
  int64_t round_ = 0;
  int64_t round_done_ = 0;
  int64_t round_steps_ = 0;
  int64_t done_ = 0;
  int64_t next_task_ = 1;
  int64_t term_ = 1;
  int64_t batches_committed_ = 0;
  int64_t batches_granted_ = 0;  // to leases that have not used them yet (max_batches)

  std::map<Key, Range> ranges_;
  std::set<Key> waiting_;
  std::unordered_map<int64_t, Lease> leases_;
  std::unordered_map<Incarnation, Holder> holders_;
  std::unordered_map<int64_t, OpenShard> open_shards_;  // by position; those in several pieces
  std::unordered_set<int64_t> given_up_;
  std::unordered_map<int64_t, std::vector<Incarnation>> failures_;  // by shard
  // Task ids: a client's retry is answered from here. Not saved: a takeover loses nothing by it.
  std::unordered_set<int64_t> done_tasks_;
  std::deque<int64_t> done_order_;
};

}  // namespace sluice::elastic
