#include <utility>

#include "base/log.h"
#include "elastic/job/fleet_calls_internal.h"
#include "elastic/master/job_processes_internal.h"
#include "planner/plan.pb.h"

namespace sluice::elastic {
namespace {

// More than a job of ten thousand workers requests at once.
constexpr size_t kMaxWaiting = 100'000;

}  // namespace

FleetCalls::FleetCalls(Fleet& fleet, std::shared_ptr<JobProcesses> processes,
                       const plan::Strategy& strategy,
                       const std::function<void(const Status&)>& on_error)
    : fleet_(fleet),
      processes_(std::move(processes)),
      strategy_(strategy),
      workers_("starts and stops of workers", kMaxWaiting, on_error),
      servers_("starts and stops of parameter servers", kMaxWaiting, on_error) {}

Status FleetCalls::Launch(ProcessSpec spec, double memory_factor,
                          std::function<Status(const Status&)> launched) {
  if (spec.config.empty()) {
    return ResourceExhausted("the plan of this job is larger than a message can be");
  }
  spec.resources.cpu = strategy_.cpu();
  spec.resources.memory_factor = memory_factor;
  spec.resources.memory_bytes =
      static_cast<int64_t>(static_cast<double>(strategy_.memory_bytes()) * memory_factor);
  spec.priority = strategy_.priority();
  WorkQueue& calls = spec.role == Role::kWorker ? workers_ : servers_;
  return calls.Put([this, spec = std::move(spec), launched = std::move(launched)] {
    processes_->Add(spec.name, spec.role == Role::kWorker ? kNoServer : spec.server_index);
    const Status status = fleet_.Launch(spec);
    if (!status.ok()) {
      processes_->Remove(spec.name);
    }
    return launched(status);
  });
}

void FleetCalls::Stop(const std::string& name, double grace_seconds) {
  const Status status = fleet_.Stop(name, grace_seconds);
  if (!status.ok()) {
    log::Debug("{} need not be stopped, it is gone: {}", name, status.message());
  }
}

Status FleetCalls::StopWorker(const std::string& name, double grace_seconds) {
  return workers_.Put([this, name, grace_seconds] {
    Stop(name, grace_seconds);
    return Status();
  });
}

Status FleetCalls::StopServer(ServerId server, double grace_seconds) {
  return servers_.Put([this, server, grace_seconds] {
    // One that an earlier master has started may have another name than ours have.
    if (const std::string name = processes_->NameOf(server); !name.empty()) {
      Stop(name, grace_seconds);
    }
    return Status();
  });
}

void FleetCalls::End() {
  servers_.Stop();
  workers_.Stop();
}

}  // namespace sluice::elastic
