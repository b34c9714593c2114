#include "elastic/task_queue.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/check.h"

namespace sluice::elastic {
namespace {

// A retry arrives within seconds; so many tasks are not done in that time.
constexpr size_t kRememberedDone = 4096;

}  // namespace

TaskQueue::TaskQueue(const Options& options)
    : options_(options),
      order_(options.shards, options.seed, 1, options.shuffle),
      rows_per_epoch_(1, 0),
      shard_rows_(static_cast<size_t>(options.shards), -1) {
  SLUICE_CHECK(options.shards >= 0, "a queue has no negative number of shards");
  SLUICE_CHECK(options.epochs >= 1, "a job has at least one epoch");
}

TimePoint TaskQueue::Deadline(TimePoint now) const {
  return now + std::chrono::duration_cast<TimePoint>(
                   std::chrono::duration<double>(options_.lease_seconds));
}

int64_t TaskQueue::RoundEnd() const {
  if (options_.lanes == 0) {
    return options_.shards;
  }
  return std::min<int64_t>(options_.shards, (round_ + 1) * options_.lanes);
}

int64_t TaskQueue::BatchLimit() const {
  if (options_.max_batches == 0) {
    return Task::kToTheEnd;
  }
  if (options_.lanes > 0) {
    return options_.max_batches - batches_committed_;  // steps of earlier rounds
  }
  const int64_t left = options_.max_batches - batches_committed_ - batches_granted_;
  return std::min(left, options_.batches_per_task);
}

Task TaskQueue::MakeTask(int64_t position, const Pending& pending, int64_t limit) {
  Task task;
  task.id = next_task_++;
  task.epoch = epoch_;
  task.shard = order_.At(position);
  task.first_batch = pending.first_batch;
  task.attempt = pending.attempt + 1;
  if (limit != Task::kToTheEnd) {
    // In synchronous mode the limit is the round's: steps count from the round's start.
    task.last_batch = options_.lanes > 0 ? limit : pending.first_batch + limit;
  }
  if (options_.lanes > 0) {
    task.round = round_;
    task.lane = static_cast<uint32_t>(position - round_ * options_.lanes);
    task.lanes = static_cast<uint32_t>(RoundEnd() - round_ * options_.lanes);
  }
  return task;
}

std::optional<Task> TaskQueue::Take(Incarnation owner, TimePoint now) {
  const int64_t limit = BatchLimit();
  if (limit <= 0) {
    return std::nullopt;
  }
  Lease lease;
  Pending pending;
  if (!requeued_.empty()) {
    lease.position = requeued_.begin()->first;
    pending = requeued_.begin()->second;
    requeued_.erase(requeued_.begin());
  } else if (cursor_ < RoundEnd()) {
    lease.position = cursor_++;
  } else {
    return std::nullopt;
  }
  lease.task = MakeTask(lease.position, pending, limit);
  lease.owner = owner;
  lease.said.next_batch = pending.first_batch;
  lease.rows_before = pending.rows;
  lease.deadline = Deadline(now);
  if (options_.max_batches > 0 && options_.lanes == 0) {
    batches_granted_ += limit;
  }
  return leases_.emplace(lease.task.id, std::move(lease)).first->second.task;
}

Result<TaskQueue::Answer> TaskQueue::Report(Incarnation owner, const TaskReport& report,
                                            TimePoint now) {
  auto found = leases_.find(report.task);
  if (found == leases_.end()) {
    if (std::find(recently_done_.begin(), recently_done_.end(), report.task) !=
        recently_done_.end()) {
      return Answer::kDuplicate;
    }
    if (!Revive(owner, report.task, now)) {
      return Answer::kRejected;
    }
    found = leases_.find(report.task);
  }
  Lease& lease = found->second;
  if (lease.owner != owner || report.next_batch > lease.task.last_batch) {
    return Answer::kRejected;
  }
  lease.deadline = Deadline(now);
  const bool news = Commit(&lease, report);
  if (!report.done) {
    return news ? Answer::kAccepted : Answer::kDuplicate;
  }
  const Lease finished = lease;
  leases_.erase(found);
  recently_done_.push_back(report.task);
  if (recently_done_.size() > kRememberedDone) {
    recently_done_.pop_front();
  }
  if (options_.max_batches > 0 && options_.lanes == 0) {
    batches_granted_ -= finished.task.last_batch - finished.said.next_batch;
  }
  RETURN_IF_ERROR(Complete(finished, report.end_of_shard));
  return Answer::kAccepted;
}

// Sums of a report count from the start of its task: only what is new is added.
bool TaskQueue::Commit(Lease* lease, const TaskReport& report) {
  TaskReport& said = lease->said;
  if (report.next_batch < said.next_batch || report.rows < said.rows) {
    return false;
  }
  const int64_t batches = report.next_batch - said.next_batch;
  if (options_.lanes == 0) {
    batches_committed_ += batches;
    batches_granted_ -= options_.max_batches > 0 ? batches : 0;
  }
  rows_per_epoch_.back() += report.rows - said.rows;
  totals_.rows += report.rows - said.rows;
  totals_.rows_read += report.rows_read - said.rows_read;
  totals_.rows_retried += report.rows_retried - said.rows_retried;
  totals_.loss += report.loss - said.loss;
  totals_.weight += report.weight - said.weight;
  said = report;
  return batches > 0;
}

Status TaskQueue::Complete(const Lease& lease, bool end_of_shard) {
  const int64_t rows = lease.rows_before + lease.said.rows;
  if (!end_of_shard && options_.lanes == 0) {
    // The budget of this task is used up, the shard is not: what is left goes on at the front.
    Pending rest;
    rest.first_batch = lease.said.next_batch;
    rest.rows = rows;
    rest.attempt = lease.task.attempt;
    requeued_[lease.position] = rest;
    return Status();
  }
  ++done_;
  failures_.erase(lease.task.shard);
  if (options_.lanes > 0) {
    round_steps_ = std::max(round_steps_, lease.said.next_batch);
    ++round_done_;
    if (round_done_ == RoundEnd() - round_ * options_.lanes) {
      CloseRound();
    }
  }
  if (!end_of_shard) {
    return Status();
  }
  int64_t& known = shard_rows_[static_cast<size_t>(lease.task.shard)];
  if (known >= 0 && known != rows) {
    return Status(Code::kAborted,
                  fmt::format("shard {} had {} training rows in an earlier epoch and has {} in "
                              "epoch {}: the source changed while the job ran",
                              lease.task.shard, known, rows, epoch_))
        .SqlState("40001")
        .Hint("train on a table that is not written to, or let the job stage the rows first");
  }
  known = rows;
  return Status();
}

void TaskQueue::CloseRound() {
  batches_committed_ += round_steps_;
  ++round_;
  round_done_ = 0;
  round_steps_ = 0;
}

void TaskQueue::Renew(Incarnation owner, TimePoint now) {
  for (auto& [id, lease] : leases_) {
    if (lease.owner == owner) {
      lease.deadline = Deadline(now);
    }
  }
}

Task TaskQueue::Requeue(std::unordered_map<int64_t, Lease>::iterator found, bool expired) {
  const Lease lease = found->second;
  leases_.erase(found);
  if (options_.max_batches > 0 && options_.lanes == 0) {
    batches_granted_ -= lease.task.last_batch - lease.said.next_batch;
  }
  Pending pending;
  pending.first_batch = lease.said.next_batch;
  pending.rows = lease.rows_before + lease.said.rows;
  pending.attempt = lease.task.attempt;
  if (expired) {
    pending.expired_owner = lease.owner;
    pending.expired_first_batch = lease.task.first_batch;
    pending.expired_report = lease.said;
    pending.expired_report.task = lease.task.id;
  }
  requeued_[lease.position] = pending;
  Task rest = lease.task;
  rest.first_batch = lease.said.next_batch;
  return rest;
}

// The owner of a lease that ran out speaks again before anyone else took the rest: it goes on.
bool TaskQueue::Revive(Incarnation owner, int64_t task, TimePoint now) {
  const auto found = std::find_if(requeued_.begin(), requeued_.end(), [&](const auto& entry) {
    return entry.second.expired_owner == owner && entry.second.expired_report.task == task;
  });
  if (found == requeued_.end() || BatchLimit() <= 0) {
    return false;
  }
  const Pending pending = found->second;
  Lease lease;
  lease.position = found->first;
  const int64_t limit = BatchLimit();
  Pending as_before = pending;
  as_before.attempt = pending.attempt - 1;
  lease.task = MakeTask(lease.position, as_before, limit);
  lease.task.id = task;
  lease.task.first_batch = pending.expired_first_batch;
  lease.owner = owner;
  lease.said = pending.expired_report;
  lease.rows_before = pending.rows - pending.expired_report.rows;
  lease.deadline = Deadline(now);
  if (options_.max_batches > 0 && options_.lanes == 0) {
    batches_granted_ += limit;
  }
  requeued_.erase(found);
  leases_.emplace(task, lease);
  return true;
}

std::vector<Task> TaskQueue::ReleaseAll(Incarnation owner) {
  std::vector<int64_t> ids;
  for (const auto& [id, lease] : leases_) {
    if (lease.owner == owner) {
      ids.push_back(id);
    }
  }
  std::sort(ids.begin(), ids.end());
  std::vector<Task> requeued;
  for (int64_t id : ids) {
    requeued.push_back(Requeue(leases_.find(id), false));
  }
  // What had expired under this owner is not its any more either.
  for (auto& [position, pending] : requeued_) {
    if (pending.expired_owner == owner) {
      pending.expired_owner = 0;
    }
  }
  return requeued;
}

std::vector<Task> TaskQueue::ReleaseOthers(Incarnation owner, const std::vector<int64_t>& held) {
  std::vector<int64_t> unknown;
  for (const auto& [id, lease] : leases_) {
    if (lease.owner == owner && std::find(held.begin(), held.end(), id) == held.end()) {
      unknown.push_back(id);
    }
  }
  std::vector<Task> requeued;
  for (int64_t id : unknown) {
    requeued.push_back(Requeue(leases_.find(id), false));
  }
  return requeued;
}

std::optional<Task> TaskQueue::Release(Incarnation owner, int64_t task) {
  const auto found = leases_.find(task);
  if (found == leases_.end() || found->second.owner != owner) {
    return std::nullopt;
  }
  return Requeue(found, false);
}

std::vector<Task> TaskQueue::ExpireLeases(TimePoint now) {
  std::vector<int64_t> ids;
  for (const auto& [id, lease] : leases_) {
    if (lease.deadline <= now) {
      ids.push_back(id);
    }
  }
  std::sort(ids.begin(), ids.end());
  std::vector<Task> requeued;
  for (int64_t id : ids) {
    requeued.push_back(Requeue(leases_.find(id), true));
  }
  return requeued;
}

bool TaskQueue::ChargeFailure(Incarnation owner, int64_t shard) {
  std::vector<Incarnation>& failed = failures_[shard];
  failed.push_back(owner);
  const std::set<Incarnation> distinct(failed.begin(), failed.end());
  return failed.size() >= kFailuresToQuarantine && distinct.size() >= 2;
}

bool TaskQueue::BudgetSpent() const {
  return options_.max_batches > 0 && batches_committed_ >= options_.max_batches;
}

bool TaskQueue::EpochDone() const {
  return done_ == options_.shards || BudgetSpent();
}

void TaskQueue::StartNextEpoch() {
  SLUICE_CHECK(done_ == options_.shards && leases_.empty() && requeued_.empty(),
               "an epoch begins when every shard of the last one is committed");
  ++epoch_;
  order_ = ShardOrder(options_.shards, options_.seed, epoch_, options_.shuffle);
  cursor_ = 0;
  round_ = 0;
  round_done_ = 0;
  done_ = 0;
  rows_per_epoch_.push_back(0);
}

size_t TaskQueue::LeasedBy(Incarnation owner) const {
  return static_cast<size_t>(std::count_if(leases_.begin(), leases_.end(),
                                           [&](const auto& l) { return l.second.owner == owner; }));
}

int64_t TaskQueue::ready() const {
  if (BatchLimit() <= 0) {
    return 0;
  }
  return static_cast<int64_t>(requeued_.size()) + RoundEnd() - cursor_;
}

int64_t TaskQueue::RowsOfSnapshot() const {
  int64_t rows = 0;
  for (int64_t shard : shard_rows_) {
    rows += std::max<int64_t>(shard, 0);
  }
  return rows;
}

Status TaskQueue::CheckLedger() const {
  if (BudgetSpent()) {
    return Status();  // exactly max_batches are committed; the last epoch is cut short by intent
  }
  const int64_t snapshot = RowsOfSnapshot();
  for (size_t epoch = 0; epoch < rows_per_epoch_.size(); ++epoch) {
    if (rows_per_epoch_[epoch] != snapshot) {
      return Internal(
          fmt::format("the ledger does not add up: {} rows trained in epoch {}, {} in the snapshot",
                      rows_per_epoch_[epoch], epoch + 1, snapshot));
    }
  }
  if (std::find(shard_rows_.begin(), shard_rows_.end(), -1) != shard_rows_.end()) {
    return Internal("the ledger does not add up: a shard was never committed");
  }
  return Status();
}

}  // namespace sluice::elastic
