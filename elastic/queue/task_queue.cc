#include "elastic/queue/task_queue.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/check.h"

namespace sluice::elastic {
namespace {

// A lease that is always too short would go round forever: it is doubled each time.
constexpr uint32_t kMaxDoublings = 16;

}  // namespace

void TaskQueue::Do(const QueueRecord& record, TimePoint now) {
  const Status applied = state_.Apply(record, now);
  SLUICE_CHECK(applied.ok(), "the queue decides nothing that does not fit its state");
  if (state_.options().journal) {
    journal_.push_back(record);
  }
}

int64_t TaskQueue::BatchLimit() const {
  const QueueOptions& options = state_.options();
  if (options.max_batches == 0) {
    return kNoLimit;
  }
  if (options.lanes > 0) {
    return options.max_batches - state_.batches_committed();  // steps of earlier rounds
  }
  const int64_t left = options.max_batches - state_.batches_committed() - state_.batches_granted();
  return std::min(left, options.batches_per_task);
}

Task TaskQueue::HandOut(Incarnation owner, const QueueState::Key& key, Attempt attempt,
                        int64_t limit, TimePoint now) {
  QueueRecord take;
  take.kind = QueueRecord::Kind::kTake;
  take.owner = owner;
  take.position = key.position;
  take.range = key.range;
  take.attempt = attempt;
  take.report.task = state_.next_task();
  const auto range = state_.ranges().find(key);
  const bool fresh = range == state_.ranges().end();
  take.batch = fresh ? kToTheEnd : range->second.last;
  if (limit != kNoLimit) {
    // In synchronous mode the limit applies to the round: steps count from the round's start.
    const BatchIndex next =
        fresh || state_.options().lanes > 0 ? BatchIndex::First() : range->second.next;
    take.batch = std::min(take.batch, next + limit);
  }
  Do(take, now);
  return state_.leases().at(take.report.task).task;
}

std::optional<Task> TaskQueue::Take(Incarnation owner, TimePoint now) {
  const int64_t limit = BatchLimit();
  if (limit <= 0) {
    return std::nullopt;
  }
  if (!state_.waiting().empty()) {
    const QueueState::Key key = *state_.waiting().begin();
    return HandOut(owner, key, state_.NextAttempt(state_.ranges().at(key)), limit, now);
  }
  return TakeFresh(owner, now);
}

// The next shard that nobody has had in this epoch.
std::optional<Task> TaskQueue::TakeFresh(Incarnation owner, TimePoint now) {
  const int64_t limit = BatchLimit();
  while (state_.cursor() < state_.RoundEnd()) {
    const QueueState::Key key{state_.cursor(), RangeId::First()};
    if (!state_.GivenUp(state_.ShardAt(key.position))) {
      return HandOut(owner, key, state_.NextAttempt({}), limit, now);
    }
    QueueRecord skip;
    skip.kind = QueueRecord::Kind::kSkip;
    skip.position = key.position;
    Do(skip, now);
  }
  return std::nullopt;
}

void TaskQueue::OpenAll(TimePoint now) {
  std::vector<TaskId> tasks;
  while (const std::optional<Task> task = TakeFresh(kNoIncarnation, now)) {
    tasks.push_back(task->id);
  }
  RequeueAll(std::move(tasks), QueueRecord::Kind::kRelease);
}

std::optional<Task> TaskQueue::TakeBest(Incarnation owner, const Cost& cost, TimePoint now) {
  OpenAll(now);
  std::optional<QueueState::Key> best;
  int least = 0;
  for (const QueueState::Key& key : state_.waiting()) {
    const std::optional<int> own = cost(state_.ShardAt(key.position));
    if (own.has_value() && (!best.has_value() || *own < least)) {
      best = key;
      least = *own;
    }
  }
  const int64_t limit = BatchLimit();
  if (!best.has_value() || limit <= 0) {
    return std::nullopt;
  }
  return HandOut(owner, *best, state_.NextAttempt(state_.ranges().at(*best)), limit, now);
}

std::optional<Task> TaskQueue::Steal(Incarnation owner, TimePoint now) {
  if (state_.options().max_batches > 0) {
    return std::nullopt;  // tasks are small, and their batches have been granted
  }
  if (state_.options().lanes > 0) {
    const std::optional<TaskId> lane = LaggingLane(state_, owner, now);
    if (!lane.has_value()) {
      return std::nullopt;
    }
    const QueueState::Key key = state_.leases().at(*lane).key;
    return HandOut(owner, key, state_.ranges().at(key).attempt, kNoLimit, now);
  }
  const std::optional<Theft> theft = ChooseTheft(state_, owner, times_, now);
  if (!theft.has_value()) {
    return std::nullopt;
  }
  QueueState::Key key = state_.leases().at(theft->task).key;
  const QueueState::Range& range = state_.ranges().at(key);
  if (!theft->split) {
    return HandOut(owner, key, range.attempt, kNoLimit, now);
  }
  QueueRecord cut;
  cut.kind = QueueRecord::Kind::kSplit;
  cut.position = key.position;
  cut.range = key.range;
  cut.batch = range.next + (std::min(range.last, EndOf(range.batches)) - range.next + 1) / 2;
  Do(cut, now);
  key.range = RangeFrom(cut.batch);
  return HandOut(owner, key, state_.NextAttempt({}), kNoLimit, now);
}

BatchIndex TaskQueue::LastBatch(TaskId task) const {
  const auto found = state_.leases().find(task);
  return found == state_.leases().end() ? kToTheEnd : found->second.task.last_batch;
}

Status TaskQueue::CheckRows(const QueueState::Lease& lease, const TaskReport& report) const {
  RETURN_IF_ERROR(ledger().CheckChecksum(lease.task.shard, report.checksum));
  const BatchIndex last = state_.ranges().at(lease.key).last;
  if (!report.done || !(report.end_of_shard || report.next_batch >= last)) {
    return Status();
  }
  if (last != kToTheEnd && report.next_batch < last) {
    return Status(
               Code::kAborted,
               fmt::format("shard {} had more than {} batches and has {} now: the source changed "
                           "while the job ran",
                           lease.task.shard, last, report.next_batch))
        .SqlState("40001");
  }
  const std::optional<int64_t> rows =
      state_.RowsWhenClosed(lease.key, lease.rows_before + report.rows);
  return rows.has_value() && !state_.GivenUp(lease.task.shard)
             ? ledger().CheckRows(lease.task.shard, *rows)
             : Status();
}

Result<TaskQueue::Answer> TaskQueue::Report(Incarnation owner, const TaskReport& report,
                                            TimePoint now) {
  const auto found = state_.leases().find(report.task);
  if (found == state_.leases().end()) {
    return state_.Remembers(report.task) ? Answer::kDuplicate : Answer::kRejected;
  }
  const QueueState::Lease& lease = found->second;
  if (lease.owner != owner) {
    return Answer::kRejected;
  }
  if (report.next_batch > lease.task.last_batch) {
    return Answer::kCut;
  }
  RETURN_IF_ERROR(CheckRows(lease, report));
  QueueRecord record;
  record.report = report;
  if (lease.expired) {
    // Its lease ran out, but no other worker has taken the rest: it continues.
    if (BatchLimit() <= 0) {
      return Answer::kRejected;
    }
    record.kind = QueueRecord::Kind::kRevive;
    Do(record, now);
  }
  state_.Renew(owner, now);
  const TaskReport& last = lease.last_report;
  const bool older = report.next_batch < last.next_batch || report.rows < last.rows;
  if (older && !report.done) {
    return Answer::kDuplicate;
  }
  const bool news = !older && report.next_batch > last.next_batch;
  if (older) {
    record.report = last;
    record.report.done = report.done;
    record.report.end_of_shard = report.end_of_shard;
  }
  if (report.done) {
    record.kind = QueueRecord::Kind::kFinish;
    times_.Finished(SecondsBetween(lease.since, now), report);
    Do(record, now);
    return Answer::kAccepted;
  }
  const bool more = news || report.rows_read != last.rows_read ||
                    report.rows_retried != last.rows_retried || report.batches != last.batches;
  if (!more) {
    return Answer::kDuplicate;
  }
  record.kind = QueueRecord::Kind::kProgress;
  Do(record, now);
  return news ? Answer::kAccepted : Answer::kDuplicate;
}

Task TaskQueue::Requeue(TaskId task, QueueRecord::Kind how) {
  const QueueState::Lease& lease = state_.leases().at(task);
  Task rest = lease.task;
  rest.first_batch = state_.ranges().at(lease.key).next;
  QueueRecord record;
  record.kind = how;
  record.report.task = task;
  Do(record, TimePoint{});
  return rest;
}

std::vector<Task> TaskQueue::RequeueAll(std::vector<TaskId> tasks, QueueRecord::Kind how) {
  std::sort(tasks.begin(), tasks.end());
  std::vector<Task> requeued;
  requeued.reserve(tasks.size());
  for (TaskId task : tasks) {
    requeued.push_back(Requeue(task, how));
  }
  return requeued;
}

std::vector<Task> TaskQueue::ReleaseAll(Incarnation owner) {
  return ReleaseOthers(owner, {});
}

std::vector<Task> TaskQueue::ReleaseOthers(Incarnation owner, const std::vector<TaskId>& held) {
  const auto holder = state_.holders().find(owner);
  if (holder == state_.holders().end()) {
    return {};
  }
  std::vector<TaskId> tasks = holder->second.tasks;
  std::erase_if(
      tasks, [&](TaskId task) { return std::find(held.begin(), held.end(), task) != held.end(); });
  return RequeueAll(std::move(tasks), QueueRecord::Kind::kRelease);
}

std::optional<Task> TaskQueue::Release(Incarnation owner, TaskId task) {
  const auto found = state_.leases().find(task);
  if (found == state_.leases().end() || found->second.owner != owner) {
    return std::nullopt;
  }
  return Requeue(task, QueueRecord::Kind::kRelease);
}

std::vector<Task> TaskQueue::ExpireLeases(TimePoint now) {
  std::vector<TaskId> tasks;
  for (const auto& [owner, holder] : state_.holders()) {
    for (TaskId task : holder.tasks) {
      const QueueState::Lease& lease = state_.leases().at(task);
      const uint32_t expiries = state_.ranges().at(lease.key).expiries;
      const double more =
          state_.options().lease_seconds *
          (std::ldexp(1.0, static_cast<int>(std::min(expiries, kMaxDoublings))) - 1);
      if (!lease.expired && SecondsBetween(holder.deadline, now) >= more) {
        tasks.push_back(task);
      }
    }
  }
  return RequeueAll(std::move(tasks), QueueRecord::Kind::kExpire);
}

bool TaskQueue::ChargeFailure(Incarnation owner, ShardId shard) {
  QueueRecord failure;
  failure.kind = QueueRecord::Kind::kFailure;
  failure.owner = owner;
  failure.shard = shard;
  Do(failure, TimePoint{});
  const std::vector<Incarnation>& failed = state_.failures().at(shard);
  const std::set<Incarnation> distinct(failed.begin(), failed.end());
  return failed.size() >= kFailuresToQuarantine && distinct.size() >= 2;
}

bool TaskQueue::Suspects(const std::vector<TaskId>& held) const {
  if (state_.failures().empty()) {
    return false;
  }
  const auto failed = [this](ShardId shard) { return state_.failures().contains(shard); };
  const std::set<QueueState::Key>& waiting = state_.waiting();
  return (!waiting.empty() && failed(state_.ShardAt(waiting.begin()->position))) ||
         std::any_of(held.begin(), held.end(), [&](TaskId task) {
           const auto lease = state_.leases().find(task);
           return lease != state_.leases().end() && failed(lease->second.task.shard);
         });
}

std::vector<Ledger::Skipped> TaskQueue::Skip(ShardId shard, TimePoint now) {
  SLUICE_CHECK(state_.options().lanes == 0, "a lane cannot be skipped");
  std::vector<Ledger::Skipped> skipped;
  const std::set<QueueState::Key> waiting = state_.waiting();
  for (const QueueState::Key& key : waiting) {
    if (state_.ShardAt(key.position) == shard) {
      const QueueState::Range& range = state_.ranges().at(key);
      skipped.push_back({epoch(), shard, range.next, range.last, -1});
      QueueRecord skip;
      skip.kind = QueueRecord::Kind::kSkip;
      skip.position = key.position;
      skip.range = key.range;
      Do(skip, now);
    }
  }
  return skipped;
}

bool TaskQueue::BudgetSpent() const {
  const int64_t most = state_.options().max_batches;
  return most > 0 && state_.batches_committed() >= most;
}

bool TaskQueue::EpochDone() const {
  return (state_.shards_done() == shards() && state_.ranges().empty()) || BudgetSpent();
}

void TaskQueue::StartNextEpoch() {
  SLUICE_CHECK(state_.shards_done() == shards() && state_.ranges().empty(),
               "an epoch begins when every shard of the last one is committed");
  QueueRecord next;
  next.kind = QueueRecord::Kind::kNextEpoch;
  Do(next, TimePoint{});
}

size_t TaskQueue::leased() const {
  return static_cast<size_t>(
      std::count_if(state_.leases().begin(), state_.leases().end(),
                    [](const auto& entry) { return !entry.second.expired; }));
}

int64_t TaskQueue::ready() const {
  if (BatchLimit() <= 0) {
    return 0;
  }
  return static_cast<int64_t>(state_.waiting().size()) + (state_.RoundEnd() - state_.cursor());
}

Status TaskQueue::CheckLedger() const {
  if (BudgetSpent()) {
    return Status();  // exactly max_batches are committed; the last epoch is intentionally cut
                      // short
  }
  return ledger().Check();
}

void TaskQueue::TakeOver(Term term, const std::vector<Incarnation>& alive, TimePoint now) {
  QueueRecord record;
  record.kind = QueueRecord::Kind::kTerm;
  record.term = term;
  Do(record, now);
  std::vector<Incarnation> gone;
  for (const auto& [owner, holder] : state_.holders()) {
    if (std::find(alive.begin(), alive.end(), owner) == alive.end()) {
      gone.push_back(owner);
    } else {
      state_.Renew(owner, now);
    }
  }
  for (Incarnation owner : gone) {
    ReleaseAll(owner);
  }
}

}  // namespace sluice::elastic
