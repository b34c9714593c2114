#include <fmt/core.h>

#include <map>
#include <utility>

#include "catalog/sql/sqlstate.h"
#include "elastic/master/master.h"

// The master's workers: started, lost, replaced.
namespace sluice::elastic {

void Master::Start(TimePoint now, const std::vector<std::string>& alive) {
  const bool took_over = pool_.open();
  pool_.Open();
  if (!took_over) {
    StartWorkers(pool_.StartThoseOf(alive, now));
  }
  Scale(pool_.wanted(), now);
  if (!took_over) {
    StopUnknown(alive);
  }
}

void Master::StopUnknown(const std::vector<std::string>& alive) {
  for (const std::string& name : alive) {
    if (!pool_.members().Find(name).has_value()) {
      outbox_.Add({Action::Kind::kStopWorker, name, kNoIncarnation});
    }
  }
}

void Master::Scale(uint32_t workers, TimePoint now, const std::vector<std::string>& give_up) {
  if (finished()) {
    return;
  }
  const WorkerPool::Change change = pool_.Scale(workers, now, give_up);
  for (const WorkerPool::Process& worker : change.drain) {
    pass_shards_.Lose(worker.incarnation);
    outbox_.Add({Action::Kind::kDrainWorker, worker.name, worker.incarnation});
    outbox_.AddEvent("worker_drained", worker.name);
  }
  StartWorkers(change.start);
}

void Master::StartWorkers(const std::vector<WorkerPool::Process>& processes) {
  for (const WorkerPool::Process& worker : processes) {
    outbox_.Add(
        {Action::Kind::kStartWorker, worker.name, worker.incarnation, worker.memory_factor});
  }
}

void Master::GiveUp(Incarnation worker, ExitClass how, const std::string& why, TimePoint now) {
  staleness_.Rest(worker);
  const std::optional<WorkerPool::Lost> lost = pool_.Remove(worker);
  if (!lost.has_value()) {
    return;
  }
  outbox_.AddEvent(lost->drained ? "worker_left" : "worker_lost",
                   fmt::format("{}: {}", lost->worker.name, why));
  Requeue(queue_.ReleaseAll(worker));
  pass_shards_.Lose(worker);
  evaluation_.Release(worker);
  if (rounds_.has_value()) {
    rounds_->Remove(worker);
  }
  if (pool_.open() && !finished()) {
    if (pool_.members().joined() == 0) {
      outbox_.AddEvent("degraded", "no worker is left; the job continues when there is one");
    }
    Replace(*lost, how, why, now);
  }
}

void Master::Replace(const WorkerPool::Lost& lost, ExitClass how, const std::string& why,
                     TimePoint now) {
  const Result<std::optional<WorkerPool::Process>> next = pool_.Replace(lost, how, why, now);
  if (next.ok()) {
    if (next->has_value()) {
      StartWorkers({**next});
    }
  } else if (pool_.Empty()) {
    Abort(next.status());
  } else {
    outbox_.AddEvent("worker_not_replaced", next.status().message());
  }
}

void Master::OnNotStarted(const std::string& name, const std::string& why, TimePoint now) {
  const std::optional<Incarnation> worker = pool_.members().Find(name);
  if (worker.has_value() && !finished() && pool_.OnNoRoom(*worker, now)) {
    outbox_.AddEvent("worker_waits", fmt::format("{}: {}", name, why));
  }
}

void Master::Tell(Incarnation worker, const std::string& kind, const std::string& what) {
  constexpr size_t kLongest = 1000;
  const std::map<Incarnation, Membership::Worker>& workers = pool_.members().workers();
  const auto found = workers.find(worker);
  if (found == workers.end() || finished() ||
      (kind == kRowsReadAgain && std::exchange(told_rows_read_again_, true))) {
    return;
  }
  outbox_.AddEvent(kind, fmt::format("{}: {}", found->second.name, what.substr(0, kLongest)));
}

bool Master::FailForDatabase(Incarnation worker, TaskId task, const Status& cause, TimePoint now) {
  if (!catalog::IsLocked(cause) && !catalog::IsOutOfConnections(cause)) {
    return false;
  }
  const bool others = !rounds_.has_value() && pool_.members().joined() > 1;
  if (!others || SecondsBetween(trained_at_, now) >= options_.database_seconds) {
    Abort(cause);
    return true;
  }
  const std::optional<Task> released = queue_.Release(worker, task);
  if (released.has_value()) {
    outbox_.AddEvent("task_requeued",
                     fmt::format("shard {}: {}", released->shard, cause.message()));
  }
  return true;
}

void Master::OnExit(const std::string& name, ExitClass exit_class, const std::string& message,
                    TimePoint now) {
  const std::optional<Incarnation> worker = pool_.members().Find(name);
  if (!worker.has_value() || finished()) {
    return;
  }
  if (exit_class == ExitClass::kConfiguration) {
    Abort(Status(Code::kFailedPrecondition,
                 fmt::format("worker {} cannot be started: {}", name, message)));
    return;
  }
  if (exit_class == ExitClass::kApplication) {
    // It crashed in its own code: every shard that it was training is under suspicion.
    if (rounds_.has_value() && ChargeLanes(*worker, kNoTask, message)) {
      Abort(Status(Code::kInternal,
                   fmt::format("a shard crashes every worker that trains it: {}", message)));
      return;
    }
    const std::vector<Task> tasks = queue_.ReleaseAll(*worker);
    Requeue(tasks);
    for (const Task& task : tasks) {
      const std::string text =
          fmt::format("shard {} crashes every worker that trains it: {}", task.shard, message);
      if (Charge(*worker, task.shard, Status(Code::kInternal, text), now)) {
        return;
      }
    }
  }
  if (exit_class == ExitClass::kOutOfMemory) {
    if (const std::optional<double> factor = pool_.RaiseMemory()) {
      outbox_.AddEvent(
          "memory_raised",
          fmt::format("{} ran out of memory: the next worker gets {:.2f} times what was asked",
                      name, *factor));
    }
  }
  if (exit_class == ExitClass::kKilledForMemory && !std::exchange(told_killed_for_memory_, true)) {
    outbox_.AddEvent(kKilledByKernel, fmt::format("{}: {}", name, message));
  }
  GiveUp(*worker, exit_class, message.empty() ? "the process ended" : message, now);
}

}  // namespace sluice::elastic
