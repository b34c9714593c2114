#include "elastic/master/master.h"

#include <fmt/core.h>

#include <algorithm>

#include "catalog/sql/sqlstate.h"

namespace sluice::elastic {
namespace {

// Errors that would occur on every worker: the job ends with the first one.
bool IsFinal(Code code) {
  switch (code) {
    case Code::kInvalidArgument:
    case Code::kNotFound:
    case Code::kAlreadyExists:
    case Code::kPermissionDenied:
    case Code::kFailedPrecondition:
    case Code::kUnimplemented:
      return true;
    default:
      return false;
  }
}

}  // namespace

Master::Master(const Options& options, TimePoint now)
    : options_(options),
      queue_(options.queue),
      pool_({options.job_name, options.workers, options.silence_seconds, options.worker_bytes}),
      evaluation_(options.evaluation_shards, options.task, options.outputs,
                  options.queue.lease_seconds),
      staleness_(options.staleness.value_or(0)),
      early_stopping_(options.patience, options.plateau, options.metric,
                      models::Metrics::HigherIsBetter(options.metric)),
      meter_(now),
      trained_at_(now),
      checkpoints_(options.checkpoint_steps) {
  pool_.Restore(options_.workers_before, options_.first_incarnation, {});
  if (options_.all_reduce.has_value()) {
    rounds_.emplace(*options_.all_reduce);
  }
  if (options_.queue.shards == 0) {
    Abort(InvalidArgument("there are no rows to train on").SqlState("02000"));
  }
}

bool Master::Dismissed() const {
  return finished() && (handover_.dismissed() || phase_ == Phase::kFailed);
}

Status Master::CheckMember(Incarnation worker, TimePoint now) {
  ASSIGN_OR_RETURN(const bool first, pool_.Contact(worker, now));
  if (first) {
    outbox_.AddEvent("worker_started", pool_.members().workers().at(worker).name);
  }
  return Status();
}

void Master::Renew(Incarnation worker, TimePoint now) {
  queue_.Renew(worker, now);
  evaluation_.Renew(worker, now);
}

void Master::Requeue(const std::vector<Task>& tasks) {
  constexpr size_t kMostTold = 4;
  if (tasks.size() > kMostTold) {  // of a pass
    outbox_.AddEvent("task_requeued",
                     fmt::format("{} shards, from {} on", tasks.size(), tasks.front().shard));
    return;
  }
  for (const Task& task : tasks) {
    outbox_.AddEvent("task_requeued",
                     fmt::format("shard {} from batch {}", task.shard, task.first_batch));
  }
}

Result<MasterLink::Answer> Master::Take(Incarnation worker, bool waiting,
                                        const std::vector<TaskId>& held, TimePoint now) {
  using Answer = MasterLink::Answer;
  if (finished()) {
    static_cast<void>(pool_.Contact(worker, now));
    return Answer{Dismissed() ? Answer::Kind::kFinished : Answer::Kind::kNothing, {}};
  }
  RETURN_IF_ERROR(CheckMember(worker, now));
  Renew(worker, now);
  if (waiting) {
    staleness_.Rest(worker);
  }
  queue_.ReleaseOthers(worker, held);
  evaluation_.Release(worker, held);
  if (pool_.drained(worker)) {
    return Answer{};
  }
  std::optional<Task> task;
  std::vector<Task> further;
  if (phase_ == Phase::kTraining && !rounds_.has_value()) {
    const auto sharers = static_cast<int64_t>(std::max<size_t>(1, pool_.members().joined()));
    const auto holds = static_cast<int64_t>(held.size());
    const int64_t lanes = options_.queue.lanes;
    // Asynchronous: one shard is trained, one is read; but a worker does not read ahead what
    // another could begin at once. Synchronous: an equal share of the round's lanes.
    const bool fair = lanes > 0 ? holds < (lanes + sharers - 1) / sharers
                                : holds < 2 && queue_.ready() >= sharers && !queue_.Suspects(held);
    if (options_.merges) {
      further = TakeShards(worker, now);
      if (!further.empty()) {
        task = std::move(further.back());
        further.pop_back();
      }
    } else if (waiting || fair) {
      task = queue_.Take(worker, now);
    }
    // Of shards that are reported together none can be taken away.
    if (!task.has_value() && waiting && !options_.merges) {
      task = queue_.Steal(worker, now);
      if (task.has_value()) {
        outbox_.AddEvent("task_shared",
                         fmt::format("shard {} from batch {}", task->shard, task->first_batch));
      }
    }
    Advance(now);  // the last shards may have been given up
  } else if ((phase_ == Phase::kEvaluating || phase_ == Phase::kComparing) &&
             (waiting || rounds_.has_value())) {
    task = evaluation_.Take(worker, next_evaluation_task_, now);
    if (task.has_value()) {
      --next_evaluation_task_;
    }
  }
  if (!task.has_value()) {
    return Answer{};
  }
  task->rate_cuts = RateCuts();
  return Answer{Answer::Kind::kTask, *std::move(task), std::move(further)};
}

Result<LeaseStatus> Master::Report(Incarnation worker, const TaskReport& report, TimePoint now) {
  if (finished()) {
    return LeaseStatus{.mine = false};
  }
  RETURN_IF_ERROR(CheckMember(worker, now));
  RETURN_IF_ERROR(CheckReport(report));
  Renew(worker, now);
  if (IsEvaluation(report.task)) {
    if (phase_ == Phase::kComparing) {
      RETURN_IF_ERROR(CompareRows(report));
    }
    const int repeats = evaluation_.repeats();
    ASSIGN_OR_RETURN(const bool counted, evaluation_.Report(worker, report));
    if (evaluation_.repeats() > repeats) {
      outbox_.AddEvent("evaluation_repeated", "the parameters changed under it");
    }
    Advance(now);
    return LeaseStatus{.mine = counted};
  }
  const int64_t rows = queue_.totals().rows;
  Result<TaskQueue::Answer> answer =
      options_.passes ? ReportPass(worker, report, now) : queue_.Report(worker, report, now);
  if (!answer.ok()) {
    Abort(answer.status());
    return answer.status();
  }
  if (queue_.totals().rows > rows) {
    trained_at_ = now;
    pool_.OnCommitted(worker);
  }
  const LeaseStatus lease_status{*answer != TaskQueue::Answer::kRejected,
                                 queue_.LastBatch(report.task)};
  Advance(now);
  CheckpointIfDue(now);
  return lease_status;
}

Result<bool> Master::MayBegin(Incarnation worker, int64_t pushed, TimePoint now) {
  RETURN_IF_ERROR(CheckMember(worker, now));
  if (finished() || !options_.staleness.has_value()) {
    return true;
  }
  Renew(worker, now);
  if (pushed < 0 || pushed > kMaxCount) {
    return InvalidArgument(fmt::format("a worker that has pushed {} batches", pushed));
  }
  return staleness_.MayBegin(worker, pushed);
}

bool Master::OthersTrain(Incarnation worker) const {
  const auto& workers = pool_.members().workers();
  return std::any_of(workers.begin(), workers.end(), [worker](const auto& each) {
    return each.first != worker && each.second.committed;
  });
}

Status Master::Fail(Incarnation worker, TaskId task, const Status& cause, TimePoint now) {
  if (finished()) {
    return Status();
  }
  RETURN_IF_ERROR(CheckMember(worker, now));
  if (FailForDatabase(worker, task, cause, now)) {
    return Status();
  }
  if (task == kNoTask && catalog::IsSnapshotGone(cause) && OthersTrain(worker)) {
    return Status();  // they keep it themselves: only new workers find none
  }
  if (IsFinal(cause.code()) || IsEvaluation(task)) {
    Abort(cause);
    return Status();
  }
  if (rounds_.has_value()) {
    if (ChargeLanes(worker, task, cause.message())) {
      Abort(cause);
    }
    return Status();
  }
  const std::optional<Task> released = queue_.Release(worker, task);
  if (!released.has_value()) {
    return Status();
  }
  outbox_.AddEvent("task_failed", fmt::format("shard {}: {}", released->shard, cause.message()));
  Status status = cause;
  Charge(
      worker, released->shard,
      std::move(status).Because(fmt::format("shard {} failed on several workers", released->shard)),
      now);
  return Status();
}

bool Master::Charge(Incarnation worker, ShardId shard, const Status& cause, TimePoint now) {
  if (!queue_.ChargeFailure(worker, shard)) {
    return false;
  }
  if (!options_.skip_poison || options_.queue.lanes > 0) {
    Abort(cause);
    return true;
  }
  for (const Ledger::Skipped& skipped : queue_.Skip(shard, now)) {
    outbox_.AddEvent("shard_skipped",
                     fmt::format("shard {} from batch {} in epoch {} and all of it later: {}",
                                 shard, skipped.first_batch, skipped.epoch, cause.message()));
  }
  Advance(now);
  return finished();
}

Status Master::Leave(Incarnation worker, TimePoint now) {
  RETURN_IF_ERROR(CheckMember(worker, now));
  staleness_.Rest(worker);
  if (!finished()) {
    outbox_.AddEvent("work_handed_back", pool_.members().workers().at(worker).name);
    Requeue(queue_.ReleaseAll(worker));
    evaluation_.Release(worker);
    if (rounds_.has_value()) {
      rounds_->Remove(worker);
    }
  }
  return Status();
}

Result<bool> Master::Heartbeat(Incarnation worker, TimePoint now) {
  if (finished()) {
    return Dismissed();
  }
  RETURN_IF_ERROR(CheckMember(worker, now));
  evaluation_.Renew(worker, now);  // it reports nothing before its end
  return false;
}

void Master::Tick(TimePoint now) {
  if (finished()) {
    return;
  }
  for (const Membership::Worker& silent : pool_.members().Silent(now)) {
    if (pool_.open()) {
      outbox_.Add({Action::Kind::kStopWorker, silent.name, silent.incarnation});
    }
    GiveUp(silent.incarnation, ExitClass::kPreempted,
           fmt::format("no sign of life for {} seconds", options_.silence_seconds), now);
  }
  if (rounds_.has_value()) {
    queue_.Renew(kAllWorkers, now);
  }
  for (const Task& task : queue_.ExpireLeases(now)) {
    outbox_.AddEvent("task_requeued", fmt::format("shard {} from batch {}: the lease ran out",
                                                  task.shard, task.first_batch));
  }
  evaluation_.ExpireLeases(now);
  StartWorkers(pool_.StartDue(now));
  SuspendIfDue(now);
}

void Master::Abort(const Status& cause) {
  if (!finished()) {
    phase_ = Phase::kFailed;
    result_ = cause;
  }
}

Progress Master::Describe(TimePoint now) {
  const TaskQueue::Totals& totals = queue_.totals();
  meter_.Measure(totals, now);
  Progress progress;
  progress.rows_done = totals.rows;
  progress.rows_read = totals.rows_read;
  const int64_t known = queue_.epoch() > Epoch::First() ? queue_.rows_per_epoch().front() : 0;
  progress.rows_total =
      std::max(totals.rows, (known > 0 ? known : options_.estimated_rows) * options_.queue.epochs);
  progress.rows_per_second = meter_.rows_per_second();
  progress.epoch = queue_.epoch();
  progress.epochs = options_.queue.epochs;
  progress.loss = meter_.loss();
  progress.metrics = validation_.metrics();
  progress.workers = static_cast<int>(pool_.members().joined());
  if (options_.passes) {  // the number of passes is unknown: progress is the fraction done
    progress.epoch = Epoch::First();
    progress.epochs = 1;
    progress.rows_total = std::max<int64_t>(known, options_.estimated_rows);
    const PassResults::Stage& stage = passes_.stage();
    if (stage.rounds > 0) {
      progress.epoch = Epoch(stage.round);
      progress.epochs = stage.rounds;
      progress.rows_total *= stage.rounds;
      progress.loss = stage.loss;
      progress.metrics = stage.metrics;
    }
    progress.rows_done =
        static_cast<int64_t>(stage.share * static_cast<double>(progress.rows_total));
    return progress;
  }
  if (meter_.pace() > 0) {
    // The end of a job with early stopping is unknown: not before its patience is over.
    const Epoch all(options_.queue.epochs);
    const uint32_t last = std::min(early_stopping_.EarliestEnd().value_or(all), all).value();
    const int64_t rows = progress.rows_total / std::max<int64_t>(1, options_.queue.epochs) *
                         std::max(last, queue_.epoch().value());
    progress.seconds_left =
        static_cast<double>(std::max<int64_t>(0, rows - progress.rows_done)) / meter_.pace();
  }
  return progress;
}

TrainOutcome Master::Outcome() const {
  TrainOutcome outcome;
  const EarlyStopping::Best& best = early_stopping_.best();
  outcome.metrics = best.epoch != kNoEpoch ? best.metrics : validation_.metrics();
  outcome.loss = meter_.epoch_loss();
  outcome.epochs = queue_.epoch().value();
  outcome.best_epoch = best.epoch.value();
  outcome.rate_cuts = rate_cuts_;
  outcome.rows_per_epoch = queue_.RowsOfSnapshot();
  outcome.validation_rows = validation_.rows();
  outcome.rows_trained = queue_.totals().rows;
  outcome.rows_read = queue_.totals().rows_read;
  outcome.rows_retried = queue_.totals().rows_retried;
  outcome.rows_skipped = queue_.ledger().rows_skipped();
  return outcome;
}

}  // namespace sluice::elastic
