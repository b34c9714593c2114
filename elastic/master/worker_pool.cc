#include "elastic/master/worker_pool.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <tuple>
#include <utility>

namespace sluice::elastic {
namespace {

// The first replacements start at once; if they keep dying, each waits longer than the one before.
constexpr int kStartsAtOnce = 4;
constexpr double kFirstWaitSeconds = 0.1;
constexpr double kLongestWaitSeconds = 5;
// How often a fleet without room is asked again.
constexpr double kRoomSeconds = 1;

}  // namespace

double WorkerPool::memory_factor() const {
  return std::pow(kMemoryFactor, memory_raises_);
}

WorkerPool::Process WorkerPool::Start(TimePoint now) {
  std::string name = WorkerName(options_.job_name, static_cast<uint64_t>(++started_));
  const Incarnation incarnation = members_.Expect(name, now);
  return {std::move(name), incarnation, memory_factor()};
}

std::vector<WorkerPool::Process> WorkerPool::StartThoseOf(const std::vector<std::string>& alive,
                                                          TimePoint now) {
  std::vector<Process> started;
  const size_t most = alive.size();  // nobody else starts with a higher number
  size_t last = 0;
  for (size_t i = 1; i <= most; ++i) {
    const std::string name = WorkerName(options_.job_name, static_cast<uint64_t>(started_) + i);
    last = std::find(alive.begin(), alive.end(), name) == alive.end() ? last : i;
  }
  for (size_t i = 0; i < last; ++i) {
    started.push_back(Start(now));
  }
  return started;
}

void WorkerPool::StartLater(double seconds, TimePoint now) {
  later_starts_.push_back(
      now + std::chrono::duration_cast<TimePoint>(std::chrono::duration<double>(seconds)));
}

WorkerPool::Change WorkerPool::Scale(uint32_t workers, TimePoint now,
                                     const std::vector<std::string>& give_up) {
  wanted_ = workers;
  Change change;
  if (!open_) {
    return change;
  }
  while (Staying() > workers && !later_starts_.empty()) {
    later_starts_.pop_back();
  }
  if (Staying() > workers) {
    change.drain = Drain(Staying() - workers, give_up);
  }
  while (Staying() < workers) {
    change.start.push_back(Start(now));
  }
  return change;
}

// First those named, then those that cause least disturbance: not joined yet, then nothing trained
// yet, then the youngest.
std::vector<WorkerPool::Process> WorkerPool::Drain(size_t count,
                                                   const std::vector<std::string>& first) {
  std::vector<const Membership::Worker*> staying;
  for (const auto& [incarnation, worker] : members_.workers()) {
    if (!drained_.contains(incarnation)) {
      staying.push_back(&worker);
    }
  }
  const auto stays = [&first](const auto* worker) {
    return std::find(first.begin(), first.end(), worker->name) == first.end();
  };
  std::sort(staying.begin(), staying.end(), [&stays](const auto* a, const auto* b) {
    return std::tuple(stays(a), a->joined, a->committed, b->incarnation) <
           std::tuple(stays(b), b->joined, b->committed, a->incarnation);
  });
  staying.resize(std::min(staying.size(), count));
  std::vector<Process> drained;
  for (const Membership::Worker* worker : staying) {
    drained_.insert(worker->incarnation);
    drained.push_back({worker->name, worker->incarnation});
  }
  return drained;
}

std::vector<WorkerPool::Process> WorkerPool::StartDue(TimePoint now) {
  const auto due = std::partition(later_starts_.begin(), later_starts_.end(),
                                  [now](TimePoint when) { return when > now; });
  std::vector<Process> started;
  for (auto start = due; start != later_starts_.end(); ++start) {
    started.push_back(Start(now));
  }
  later_starts_.erase(due, later_starts_.end());
  return started;
}

Result<bool> WorkerPool::Contact(Incarnation worker, TimePoint now) {
  const auto found = members_.workers().find(worker);
  const bool first = found != members_.workers().end() && !found->second.joined;
  if (!members_.Contact(worker, now)) {
    return Status(Code::kAborted,
                  fmt::format("incarnation {} has been given up by the master", worker));
  }
  waits_for_room_ = waits_for_room_ && !first;
  return first;
}

void WorkerPool::OnCommitted(Incarnation worker) {
  if (members_.Committed(worker)) {
    failed_starts_ = 0;
    preempted_starts_ = 0;
    killed_starts_ = 0;
  }
}

std::optional<WorkerPool::Lost> WorkerPool::Remove(Incarnation worker) {
  std::optional<Membership::Worker> lost = members_.Remove(worker);
  if (!lost.has_value()) {
    return std::nullopt;
  }
  return Lost{*std::move(lost), drained_.erase(worker) > 0};
}

Result<std::optional<WorkerPool::Process>> WorkerPool::Replace(const Lost& lost, ExitClass how,
                                                               const std::string& why,
                                                               TimePoint now) {
  std::optional<Process> none;
  if (!open_ || lost.drained || Staying() >= wanted_) {
    return none;
  }
  if (lost.worker.committed) {
    // It says nothing about the chances of the next one, however many are lost at once.
    return std::optional(Start(now));
  }
  ++(how == ExitClass::kPreempted         ? preempted_starts_
     : how == ExitClass::kKilledForMemory ? killed_starts_
                                          : failed_starts_);
  if (how == ExitClass::kKilledForMemory) {
    last_kill_ = why;
  }
  if (killed_starts_ >= kKilledStarts) {
    return TooLittleMemory();
  }
  const int starts = failed_starts_ + preempted_starts_;
  if (failed_starts_ > kFailedStarts || preempted_starts_ > kPreemptedStarts) {
    return Unavailable(
        fmt::format("{} workers in a row were lost before they had trained a batch; the last one: "
                    "{}",
                    starts, why));
  }
  const int waits = starts - std::max(kStartsAtOnce, static_cast<int>(options_.workers));
  if (waits <= 0) {
    return std::optional(Start(now));
  }
  StartLater(std::min(kLongestWaitSeconds, kFirstWaitSeconds * std::ldexp(1, waits)), now);
  return none;
}

Status WorkerPool::TooLittleMemory() const {
  Status status =
      ResourceExhausted(
          fmt::format("{} workers were killed by the kernel for lack of memory before "
                      "they had trained a batch; the last one: {}",
                      killed_starts_, last_kill_))
          .SqlState("53200")
          .Hint(
              "a higher limit of the control group (memory.max, the container's memory), fewer "
              "workers in it (engine.num_workers), smaller layers or a smaller train.batch_size");
  return options_.worker_bytes == 0
             ? status
             : std::move(status).Detail(fmt::format("a worker of this training takes about {} MiB",
                                                    options_.worker_bytes >> 20U));
}

bool WorkerPool::OnNoRoom(Incarnation worker, TimePoint now) {
  const std::optional<Lost> lost = Remove(worker);
  if (!lost.has_value() || lost->drained) {
    return false;
  }
  StartLater(kRoomSeconds, now);
  return !std::exchange(waits_for_room_, true);
}

std::optional<double> WorkerPool::RaiseMemory() {
  if (memory_raises_ == kMemoryRaises) {
    return std::nullopt;
  }
  ++memory_raises_;
  return memory_factor();
}

void WorkerPool::Restore(int started, Incarnation next,
                         const std::vector<Membership::Worker>& members) {
  started_ = started;
  members_.Restore(next, members);
}

}  // namespace sluice::elastic
