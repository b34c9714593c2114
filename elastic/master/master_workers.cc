#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "catalog/sql/sqlstate.h"
#include "elastic/master/master.h"

// The master's workers: started, lost, replaced.
namespace sluice::elastic {
namespace {

// The first replacements start at once; when they keep dying, each waits longer than the last.
constexpr int kStartsAtOnce = 4;
constexpr double kFirstWaitSeconds = 0.1;
constexpr double kLongestWaitSeconds = 5;
// A fleet without room is asked again so often.
constexpr double kRoomSeconds = 1;

}  // namespace

void Master::Start(TimePoint now) {
  fleet_ = true;
  Scale(wanted_.value_or(options_.workers), now);
}

void Master::StartWorker(TimePoint now) {
  Action action;
  action.name = fmt::format("{}-worker-{}", options_.job_name, ++started_);
  action.incarnation = members_.Expect(action.name, now);
  action.memory_factor = std::pow(kMemoryFactor, memory_raises_);
  actions_.push_back(action);
}

void Master::GiveUp(Incarnation worker, ExitClass how, const std::string& why, TimePoint now) {
  staleness_.Rest(worker);
  const std::optional<Membership::Worker> lost = members_.Remove(worker);
  if (!lost.has_value()) {
    return;
  }
  const bool drained = drained_.erase(worker) > 0;
  AddEvent(drained ? "worker_left" : "worker_lost", fmt::format("{}: {}", lost->name, why));
  Requeue(queue_.ReleaseAll(worker));
  evaluation_.Release(worker);
  if (rendezvous_.has_value()) {
    rendezvous_->Remove(worker);
  }
  if (fleet_ && !finished()) {
    if (members_.joined() == 0) {
      AddEvent("degraded", "no worker is left; the job goes on when there is one");
    }
    if (!drained && Staying() < wanted_.value_or(0)) {
      Replace(how, why, lost->committed, now);
    }
  }
}

void Master::OnNotStarted(const std::string& name, const std::string& why, TimePoint now) {
  const std::optional<Incarnation> worker = members_.Find(name);
  if (!worker.has_value() || finished()) {
    return;
  }
  members_.Remove(*worker);
  if (!std::exchange(waits_for_room_, true)) {
    AddEvent("worker_waits", fmt::format("{}: {}", name, why));
  }
  StartLater(kRoomSeconds, now);
}

void Master::StartLater(double seconds, TimePoint now) {
  later_starts_.push_back(
      now + std::chrono::duration_cast<TimePoint>(std::chrono::duration<double>(seconds)));
}

void Master::Replace(ExitClass how, const std::string& why, bool had_trained, TimePoint now) {
  if (had_trained) {
    StartWorker(now);  // it says nothing about the chances of the next; however many at once
    return;
  }
  ++(how == ExitClass::kPreempted ? preempted_starts_ : failed_starts_);
  if (failed_starts_ > kFailedStarts || preempted_starts_ > kPreemptedStarts) {
    const std::string text = fmt::format(
        "{} workers in a row were lost before they had trained a batch; the last one: {}",
        failed_starts_ + preempted_starts_, why);
    if (members_.size() + later_starts_.size() == 0) {
      Abort(Unavailable(text));
    } else {
      AddEvent("worker_not_replaced", text);
    }
    return;
  }
  const int waits = failed_starts_ + preempted_starts_ -
                    std::max(kStartsAtOnce, static_cast<int>(options_.workers));
  if (waits <= 0) {
    StartWorker(now);
    return;
  }
  const double seconds = std::min(kLongestWaitSeconds, kFirstWaitSeconds * std::ldexp(1, waits));
  StartLater(seconds, now);
}

void Master::Wait(Incarnation worker, const std::string& what) {
  constexpr size_t kLongest = 1000;
  const auto found = members_.workers().find(worker);
  if (found != members_.workers().end() && !finished()) {
    AddEvent(kDatabaseWaits, fmt::format("{}: {}", found->second.name, what.substr(0, kLongest)));
  }
}

bool Master::FailForDatabase(Incarnation worker, int64_t task, const Status& cause, TimePoint now) {
  if (!catalog::IsLocked(cause) && !catalog::IsOutOfConnections(cause)) {
    return false;
  }
  const bool others = !rendezvous_.has_value() && members_.joined() > 1;
  if (!others || SecondsBetween(trained_at_, now) >= options_.database_seconds) {
    Abort(cause);
    return true;
  }
  const std::optional<Task> released = queue_.Release(worker, task);
  if (released.has_value()) {
    AddEvent("task_requeued", fmt::format("shard {}: {}", released->shard, cause.message()));
  }
  return true;
}

void Master::OnExit(const std::string& name, ExitClass exit_class, const std::string& message,
                    TimePoint now) {
  const std::optional<Incarnation> worker = members_.Find(name);
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
    if (rendezvous_.has_value() && ChargeLanes(*worker, 0, message)) {
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
  if (exit_class == ExitClass::kOutOfMemory && memory_raises_ < kMemoryRaises) {
    ++memory_raises_;
    AddEvent("memory_raised",
             fmt::format("{} ran out of memory: the next worker gets {:.2f} times what was asked",
                         name, std::pow(kMemoryFactor, memory_raises_)));
  }
  GiveUp(*worker, exit_class, message.empty() ? "the process ended" : message, now);
}

}  // namespace sluice::elastic
