#include "executor/pods/job_fleet.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "executor/job_record.h"

namespace sluice::executor {

JobFleet::JobFleet(k8s::PodFleet& pods, JobRecord& job, Allowed allowed)
    : pods_(pods), job_(job), allowed_(allowed) {
  {
    const MutexLock lock(mutex_);
    for (const k8s::PodFleet::Adopted& pod : pods_.adopted()) {
      if (pod.identity.role != elastic::Role::kMaster) {
        living_.emplace(pod.name, pod.identity.role);
      }
    }
    Count();
  }
  pods_.Watch([this](const elastic::FleetEvent& event) { OnEvent(event); });
}

Status JobFleet::Launch(const elastic::ProcessSpec& spec) {
  const Status launched = pods_.Launch(spec);
  if (launched.ok()) {
    const MutexLock lock(mutex_);
    living_.emplace(spec.name, spec.role);
    Count();
  }
  return launched;
}

Status JobFleet::Stop(const std::string& name, double grace_seconds) {
  return pods_.Stop(name, grace_seconds);
}

void JobFleet::Watch(Watcher watcher) {
  const MutexLock lock(mutex_);
  watcher_ = std::move(watcher);
}

bool JobFleet::EndAdopted(const std::stop_token& stop) {
  std::map<std::string, elastic::Role> ending;
  {
    const MutexLock lock(mutex_);
    ending = living_;
  }
  for (const auto& [name, role] : ending) {
    const Status asked = pods_.Stop(name, 1);
    if (!asked.ok()) {
      log::Debug("{} need not be stopped: {}", name, asked.message());
    }
  }
  MutexLock lock(mutex_);
  changed_.wait(lock.native(), stop,
                [this]() NO_THREAD_SAFETY_ANALYSIS { return living_.empty(); });
  return living_.empty();
}

void JobFleet::OnEvent(const elastic::FleetEvent& event) {
  using Kind = elastic::FleetEvent::Kind;
  if (event.role == elastic::Role::kMaster) {
    return;  // its own keeper looks after that one
  }
  Watcher watcher;
  {
    const MutexLock lock(mutex_);
    if (event.kind == Kind::kExited) {
      living_.erase(event.name);
      waits_for_.erase(event.name);
      Count();
      changed_.notify_all();
    } else if (event.kind == Kind::kWaiting && event.message != k8s::kWaitsForScheduler &&
               event.message != k8s::kWaitsForNode && waits_for_[event.name] != event.message) {
      waits_for_[event.name] = event.message;
      job_.Event("pod_waits", fmt::format("{}: {}", event.name, event.message));
    }
    watcher = watcher_;
  }
  if (watcher) {
    watcher(event);
  }
}

void JobFleet::Count() {
  const int64_t workers = std::count_if(living_.begin(), living_.end(), [](const auto& pod) {
    return pod.second == elastic::Role::kWorker;
  });
  if (workers != std::exchange(counted_, workers)) {
    catalog::JobWorkers row;
    row.now = workers;
    row.wanted = allowed_.max;
    row.min = allowed_.min;
    row.max = allowed_.max;
    job_.Workers(row);
  }
}

}  // namespace sluice::executor
