#include "elastic/queue/queue_state.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>

#include "base/check.h"

namespace sluice::elastic {
namespace {

template <typename Which>
Status Inconsistent(const char* what, Which which) {
  return Status(Code::kInternal,
                fmt::format("the journal does not fit this job: no {} {}", what, which));
}

}  // namespace

QueueState::QueueState(const QueueOptions& options)
    : options_(options),
      order_(options.shards, options.seed, Epoch::First(), options.shuffle),
      ledger_(options.shards) {
  SLUICE_CHECK(options.shards >= 0, "a queue has no negative number of shards");
  SLUICE_CHECK(options.epochs >= 1, "a job has at least one epoch");
}

TimePoint QueueState::Deadline(TimePoint now) const {
  return now + std::chrono::duration_cast<TimePoint>(
                   std::chrono::duration<double>(options_.lease_seconds));
}

ShardPosition QueueState::RoundEnd() const {
  const ShardPosition end(options_.shards);
  return options_.lanes == 0 ? end : std::min(end, RoundBegin() + options_.lanes);
}

int64_t QueueState::steps() const {
  if (options_.lanes == 0) {
    return batches_committed_;
  }
  int64_t open = round_steps_;
  for (const auto& [key, range] : ranges_) {  // those of the open round only
    open = std::max(open, range.next - BatchIndex::First());
  }
  return batches_committed_ + open;
}

Attempt QueueState::NextAttempt(const Range& range) const {
  return std::max(range.attempt, AttemptBefore(term_)).Next();
}

void QueueState::Renew(Incarnation owner, TimePoint now) {
  const auto found = holders_.find(owner);
  if (found != holders_.end()) {
    found->second.deadline = Deadline(now);
  }
}

Status QueueState::Apply(const QueueRecord& record, TimePoint now) {
  using Kind = QueueRecord::Kind;
  const auto lease = leases_.find(record.report.task);
  switch (record.kind) {
    case Kind::kTake:
      return Take(record, now);
    case Kind::kProgress:
      return Progress(record, now);
    case Kind::kFinish:
      return Finish(record);
    case Kind::kSplit:
      return Split(record);
    case Kind::kSkip:
      return Skip(record);
    case Kind::kNextEpoch:
      return NextEpoch();
    case Kind::kRelease:
    case Kind::kExpire:
    case Kind::kRevive:
      if (lease == leases_.end()) {
        return Inconsistent("task", record.report.task);
      }
      if (record.kind == Kind::kRelease) {
        DropLease(record.report.task);
      } else if (record.kind == Kind::kExpire && !lease->second.expired) {
        Grant(lease->second, -1);
        lease->second.expired = true;
        ++ranges_.at(lease->second.key).expiries;
        WaitIfUnheld(lease->second.key);
      } else if (record.kind == Kind::kRevive && lease->second.expired) {
        lease->second.expired = false;
        Grant(lease->second, 1);
        waiting_.erase(lease->second.key);
      }
      return Status();
    case Kind::kFailure:
      if (!Exists(record.shard)) {
        return Inconsistent("shard", record.shard);
      }
      failures_[record.shard].push_back(record.owner);
      return Status();
    case Kind::kTerm:
      if (record.term < Term::First() || record.term > kLastTerm) {
        return Inconsistent("term", record.term);
      }
      term_ = std::max(term_, record.term);
      next_task_ = std::max(next_task_, FirstTaskOf(term_));
      return Status();
  }
  return Inconsistent("kind of transition", static_cast<int64_t>(record.kind));
}

Status QueueState::Take(const QueueRecord& record, TimePoint now) {
  const Key key{record.position, record.range};
  auto found = ranges_.find(key);
  if (record.report.task < TaskId::First() || leases_.contains(record.report.task)) {
    return Inconsistent("room for task", record.report.task);
  }
  if (record.batch < (found == ranges_.end() ? BatchIndex::First() : found->second.next)) {
    return Inconsistent("batch", record.batch);
  }
  if (found == ranges_.end()) {
    if (record.range != RangeId::First() || record.position != cursor_ ||
        record.position >= RoundEnd()) {
      return Inconsistent("shard that is to be handed out at", record.position);
    }
    ++cursor_;
    found = ranges_.emplace(key, Range()).first;
  }
  Range& range = found->second;
  if (record.attempt != range.attempt) {
    // Fences off previous holders; a racing copy shares the attempt.
    for (TaskId task : std::vector<TaskId>(range.holders)) {
      DropLease(task);
    }
  }
  waiting_.erase(key);
  range.attempt = record.attempt;
  Lease lease;
  lease.task.id = record.report.task;
  lease.task.epoch = epoch_;
  lease.task.shard = ShardAt(record.position);
  lease.task.range = record.range;
  lease.task.first_batch = range.next;
  lease.task.last_batch = record.batch;
  lease.task.attempt = record.attempt;
  SetLane(&lease.task, record.position);
  lease.owner = record.owner;
  lease.key = key;
  lease.rows_before = range.rows;
  lease.loss_before = range.loss;
  lease.weight_before = range.weight;
  lease.last_report.task = record.report.task;
  lease.last_report.next_batch = range.next;
  lease.since = now;
  lease.progress = now;
  Grant(lease, 1);
  next_task_ = std::max(next_task_, record.report.task.Next());
  range.holders.push_back(record.report.task);
  Holder& holder = holders_[record.owner];
  holder.deadline = Deadline(now);
  holder.tasks.push_back(record.report.task);
  leases_[record.report.task] = std::move(lease);
  return Status();
}

void QueueState::SetLane(Task* task, ShardPosition position) const {
  if (options_.lanes > 0) {
    const ShardPosition begin = RoundBegin();
    task->round = round_;
    task->lane = static_cast<uint32_t>(position - begin);
    task->lanes = static_cast<uint32_t>(RoundEnd() - begin);
  }
}

Status QueueState::Progress(const QueueRecord& record, TimePoint now) {
  const auto found = leases_.find(record.report.task);
  if (found == leases_.end()) {
    return Inconsistent("task", record.report.task);
  }
  if (record.report.next_batch > found->second.last_report.next_batch) {
    found->second.progress = now;
  }
  Commit(&found->second, &ranges_.at(found->second.key), record.report);
  return Status();
}

// Sums of a report count from the start of its task, and the range remembers its progress: of two
// copies of a task only what is new is added.
void QueueState::Commit(Lease* lease, Range* range, const TaskReport& report) {
  TaskReport& last = lease->last_report;
  Grant(*lease, -1);
  Ledger::Totals news;
  news.rows_read = report.rows_read - last.rows_read;
  news.rows_retried = report.rows_retried - last.rows_retried;
  const int64_t batches = report.next_batch - range->next;
  if (batches > 0) {
    // Two copies of a lane compute the same; the sums are exact (CountedSum).
    news.rows = lease->rows_before + report.rows - range->rows;
    news.loss = lease->loss_before + report.loss - range->loss;
    news.weight = lease->weight_before + report.weight - range->weight;
    range->next = report.next_batch;
    range->expiries = 0;
    range->rows = lease->rows_before + report.rows;
    range->loss = lease->loss_before + report.loss;
    range->weight = lease->weight_before + report.weight;
    batches_committed_ += options_.lanes == 0 ? batches : 0;
  }
  if (report.batches > 0) {
    range->batches = report.batches;
    range->shard_rows = report.shard_rows;
  }
  ledger_.Add(news);
  ledger_.SawChecksum(lease->task.shard, report.checksum);
  last = report;
  Grant(*lease, 1);
}

Status QueueState::Finish(const QueueRecord& record) {
  const auto found = leases_.find(record.report.task);
  if (found == leases_.end()) {
    return Inconsistent("task", record.report.task);
  }
  Range& range = ranges_.at(found->second.key);
  Commit(&found->second, &range, record.report);
  const Key key = found->second.key;
  done_tasks_.Add(record.report.task);
  const bool closed = record.report.end_of_shard || range.next >= range.last || options_.lanes > 0;
  if (!closed) {
    // The budget of this task is used up, but the range is not: the rest goes to the front of the
    // queue.
    DropLease(record.report.task);
    return Status();
  }
  failures_.erase(found->second.task.shard);
  if (!record.report.end_of_shard && options_.lanes > 0) {
    open_shards_[key.position].cut_short = true;
  }
  for (TaskId task : std::vector<TaskId>(range.holders)) {
    DropLease(task);
  }
  CloseRange(key, range);
  return Status();
}

std::optional<int64_t> QueueState::RowsWhenClosed(const Key& key, int64_t rows) const {
  for (auto it = ranges_.lower_bound({key.position, RangeId::First()});
       it != ranges_.end() && it->first.position == key.position; ++it) {
    if (it->first != key) {
      return std::nullopt;
    }
  }
  const auto open = open_shards_.find(key.position);
  return open == open_shards_.end() ? rows : rows + open->second.rows;
}

void QueueState::CloseRange(const Key& key, const Range& range) {
  const bool last = RowsWhenClosed(key, 0).has_value();
  OpenShard& shard = open_shards_[key.position];
  shard.rows += range.rows;
  if (options_.lanes > 0) {
    round_steps_ = std::max(round_steps_, range.next - BatchIndex::First());
  }
  waiting_.erase(key);
  ranges_.erase(key);
  if (last) {
    CloseShard(key.position);
  }
}

void QueueState::CloseShard(ShardPosition position) {
  const auto open = open_shards_.find(position);
  open->second.Settle(ShardAt(position), &ledger_);
  open_shards_.erase(open);
  ++done_;
  if (options_.lanes == 0) {
    return;
  }
  ++round_done_;
  if (round_done_ == RoundEnd() - RoundBegin()) {
    batches_committed_ += round_steps_;
    ++round_;
    round_done_ = 0;
    round_steps_ = 0;
  }
}

Status QueueState::Split(const QueueRecord& record) {
  const auto found = ranges_.find({record.position, record.range});
  if (found == ranges_.end() || record.batch <= found->second.next ||
      record.batch >= found->second.last) {
    return Inconsistent("range to split at batch", record.batch);
  }
  Range tail;
  tail.last = std::exchange(found->second.last, record.batch);
  tail.next = record.batch;
  tail.batches = found->second.batches;
  tail.shard_rows = found->second.shard_rows;
  for (TaskId task : found->second.holders) {
    Task& held = leases_.at(task).task;
    held.last_batch = std::min(held.last_batch, record.batch);
  }
  const Key key{record.position, RangeFrom(record.batch)};
  ranges_.emplace(key, tail);
  waiting_.insert(key);
  return Status();
}

Status QueueState::Skip(const QueueRecord& record) {
  const Key key{record.position, record.range};
  if (!Exists(record.position)) {
    return Inconsistent("shard to skip at", record.position);
  }
  const ShardId shard = ShardAt(record.position);
  given_up_.insert(shard);
  failures_.erase(shard);
  auto found = ranges_.find(key);
  if (found == ranges_.end()) {
    if (record.range != RangeId::First() || record.position != cursor_ ||
        record.position >= RoundEnd()) {
      return Inconsistent("range to skip at", record.position);
    }
    ++cursor_;
    found = ranges_.emplace(key, Range()).first;
  }
  for (TaskId task : std::vector<TaskId>(found->second.holders)) {
    DropLease(task);
  }
  const Range range = found->second;
  Ledger::Skipped skipped{epoch_, shard, range.next, range.last, -1};
  if (range.batches > 0) {
    skipped.last_batch = std::min(range.last, EndOf(range.batches));
    skipped.rows = range.shard_rows;
  }
  open_shards_[record.position].Skip(skipped);
  CloseRange(key, range);
  return Status();
}

Status QueueState::NextEpoch() {
  if (done_ != options_.shards || !ranges_.empty()) {
    return Inconsistent("end of epoch", epoch_);
  }
  ++epoch_;
  order_ = ShardOrder(options_.shards, options_.seed, epoch_, options_.shuffle);
  cursor_ = ShardPosition::First();
  round_ = RoundIndex::First();
  round_done_ = 0;
  done_ = 0;
  ledger_.NextEpoch();
  return Status();
}

void QueueState::Grant(const Lease& lease, int sign) {
  if (counts_grants() && !lease.expired) {
    batches_granted_ += sign * (lease.task.last_batch - lease.last_report.next_batch);
  }
}

void QueueState::Unlist(const Lease& lease) {
  const auto holder = holders_.find(lease.owner);
  std::erase(holder->second.tasks, lease.task.id);
  if (holder->second.tasks.empty()) {
    holders_.erase(holder);
  }
}

// The range waits for another holder, unless it has a second one.
void QueueState::DropLease(TaskId task) {
  const auto found = leases_.find(task);
  Grant(found->second, -1);
  const Key key = found->second.key;
  Unlist(found->second);
  leases_.erase(found);
  std::erase(ranges_.at(key).holders, task);
  WaitIfUnheld(key);
}

void QueueState::WaitIfUnheld(const Key& key) {
  const std::vector<TaskId>& holders = ranges_.at(key).holders;
  if (std::all_of(holders.begin(), holders.end(),
                  [this](TaskId task) { return leases_.at(task).expired; })) {
    waiting_.insert(key);
  }
}

}  // namespace sluice::elastic
