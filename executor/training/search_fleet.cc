#include "executor/training/search_fleet.h"

#include <fmt/core.h>

#include <utility>

#include "base/log.h"

namespace sluice::executor {

SearchFleet::SearchFleet(elastic::Fleet& fleet, const elastic::JobEndpoint& endpoint)
    : fleet_(fleet), endpoint_(endpoint) {
  const MutexLock lock(audience_->mutex);
  audience_->workers = endpoint.workers;
}

elastic::JobEndpoint SearchFleet::Begin(uint32_t training) {
  elastic::JobEndpoint own = endpoint_;
  own.job_name = fmt::format("{}-trial{}", endpoint_.job_name, training);
  own.running.clear();
  for (elastic::RunningProcess& process : endpoint_.running) {
    if (process.name.starts_with(own.job_name + "-")) {
      own.running.push_back(std::move(process));
      continue;
    }
    const Status stopped = fleet_.Stop(process.name, 0);
    if (!stopped.ok()) {
      log::Debug("stopping {}: {}", process.name, stopped.message());
    }
  }
  endpoint_.running.clear();
  const MutexLock lock(audience_->mutex);
  begun_with_ = audience_->workers;
  own.workers = begun_with_;
  return own;
}

void SearchFleet::End() {
  const MutexLock lock(audience_->mutex);
  audience_->watcher = nullptr;
}

void SearchFleet::Watch(Watcher watcher) {
  elastic::FleetEvent granted;
  granted.kind = elastic::FleetEvent::Kind::kGranted;
  {
    const MutexLock lock(audience_->mutex);
    audience_->watcher = watcher;
    granted.workers = audience_->workers;
  }
  if (granted.workers != begun_with_) {  // granted while nobody watched
    watcher(granted);
  }
  if (!std::exchange(watches_, true)) {
    fleet_.Watch(
        [audience = audience_](const elastic::FleetEvent& event) { audience->OnEvent(event); });
  }
}

void SearchFleet::Audience::OnEvent(const elastic::FleetEvent& event) {
  Watcher now;
  {
    const MutexLock lock(mutex);
    if (event.kind == elastic::FleetEvent::Kind::kGranted) {
      workers = event.workers;
    }
    now = watcher;
  }
  if (now) {
    now(event);
  }
}

}  // namespace sluice::executor
