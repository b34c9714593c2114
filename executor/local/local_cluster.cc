#include "executor/local/local_cluster.h"

#include <fmt/core.h>

#include <vector>

#include "base/check.h"
#include "base/log.h"
#include "catalog/catalog.h"
#include "executor/executor.h"
#include "executor/jobs/lost_jobs.h"
#include "executor/local/job_news.h"
#include "executor/local/job_process.pb.h"
#include "executor/local/new_job.h"
#include "executor/local/train_on_master.h"

namespace sluice::executor {

LocalCluster::LocalCluster(Options options)
    : options_(std::move(options)),
      room_(std::make_unique<SlotArbiter>(options_.slots)),
      arbiter_(static_cast<SlotArbiter*>(room_.get())) {}

LocalCluster::LocalCluster(Options options, std::unique_ptr<Room> room)
    : options_(std::move(options)), room_(std::move(room)) {}

LocalCluster::~LocalCluster() = default;

Status LocalCluster::ServeRoom(const std::string& name) {
  SLUICE_CHECK(arbiter_ != nullptr, "a cluster that asks for room elsewhere cannot grant it");
  ASSIGN_OR_RETURN(room_server_, RoomServer::Start(name, *arbiter_));
  return OkStatus();
}

Result<LocalFleet*> LocalCluster::Fleet() {
  const MutexLock lock(mutex_);
  if (fleet_ == nullptr) {
    LocalFleet::Options options;
    options.binary = options_.binary;
    ASSIGN_OR_RETURN(fleet_, LocalFleet::Make(std::move(options)));
    fleet_->Watch([this](const elastic::FleetEvent& event) {
      const Owner owner = OwnerOf(event.name);
      if (event.kind == elastic::FleetEvent::Kind::kExited) {
        if (event.role == elastic::Role::kWorker) {
          room_->WorkerEnded(owner.job, owner.memory_bytes,
                             event.exit_class == elastic::ExitClass::kOutOfMemory);
        }
        Forget(event.name);  // first, because the listener may reuse the name at once
      }
      if (owner.listener != nullptr) {
        owner.listener->on_event(event);
      }
    });
  }
  return fleet_.get();
}

LocalCluster::Owner LocalCluster::OwnerOf(const std::string& name) {
  const MutexLock lock(mutex_);
  const auto found = owners_.find(name);
  return found == owners_.end() ? Owner() : found->second;
}

void LocalCluster::Forget(const std::string& name) {
  const MutexLock lock(mutex_);
  owners_.erase(name);
  gone_.notify_all();
}

Result<std::unique_ptr<LocalCluster::Share>> LocalCluster::Open(const Room::Request& request,
                                                                Listener listener) {
  RETURN_IF_ERROR(Fleet().status());
  const auto shared = std::make_shared<const Listener>(std::move(listener));
  ASSIGN_OR_RETURN(const int64_t job, room_->Enter(request, shared->on_grant));
  return std::make_unique<Share>(*this, job, shared);
}

Result<StartedJob> LocalCluster::StartJob(Context& context, JobConfig config, JobSecrets secrets) {
  catalog::JobStore& jobs = context.catalog.jobs();
  const catalog::JobRunner here = ThisProcess();
  JobConfig::Row& row = *config.mutable_row();
  const auto start = [&]() -> Result<std::unique_ptr<JobListener>> {
    if (!row.lost() && config.may_be_taken_over()) {
      RETURN_IF_ERROR(jobs.KeepRecord(row.job(), kStatementRecord, config.SerializeAsString()));
    }
    ASSIGN_OR_RETURN(const catalog::DatabaseLogin login,
                     context.catalog.LoginForJob(row.job(), true));
    config.set_catalog_url(login.url);
    secrets.set_catalog(login.secret);
    row.set_pid(here.pid);
    row.set_started(here.started);
    config.set_slots(options_.slots.slots);
    config.set_memory_bytes(options_.slots.memory_bytes);
    return StartJobProcess(options_.binary, config, secrets);
  };
  if (!row.lost()) {
    ASSIGN_OR_RETURN(const int64_t job, MakeJobRow(config, context, here));
    row.set_job(job);
  }
  Result<std::unique_ptr<JobListener>> listener = start();
  if (!listener.ok() && !row.lost()) {
    AbandonNewJob(jobs, row.job(), listener.status());
  }
  RETURN_IF_ERROR(listener.status());
  return StartedJob{row.job(), *std::move(listener)};
}

Status LocalCluster::Train(const plan::TrainPlan& plan, Context& context, JobRecord& job,
                           const elastic::ProgressCallback& progress) {
  return TrainOnMaster(plan, context, job, *this, progress);
}

Result<SlotArbiter*> LocalCluster::Arbiter() const {
  if (arbiter_ == nullptr) {
    return FailedPrecondition("the process of a job does not know what its machine is used for");
  }
  return arbiter_;
}

Result<elastic::ClusterState> LocalCluster::State(const std::stop_token& /*stop*/) {
  ASSIGN_OR_RETURN(const SlotArbiter* arbiter, Arbiter());
  return arbiter->State();
}

Result<elastic::StartForecast> LocalCluster::Forecast(const plan::TrainPlan& plan,
                                                      const std::stop_token& /*stop*/) {
  ASSIGN_OR_RETURN(const SlotArbiter* arbiter, Arbiter());
  return arbiter->Forecast(RoomFor(plan, "planned"));
}

Result<int> LocalCluster::ProcessId(const std::string& name) {
  ASSIGN_OR_RETURN(const LocalFleet* fleet, Fleet());
  return fleet->ProcessId(name);
}

Status LocalCluster::Share::Launch(const elastic::ProcessSpec& spec) {
  Owner owner{listener_, job_, 0};
  elastic::ProcessSpec granted = spec;
  const bool worker = spec.role == elastic::Role::kWorker;
  if (worker) {
    owner.memory_bytes = cluster_.room_->WorkerStarted(job_);
    if (spec.resources.memory_bytes > 0) {  // otherwise a mere estimate, not enforced
      granted.resources.memory_bytes = owner.memory_bytes;
    }
  }
  bool fresh = false;
  {
    const MutexLock lock(cluster_.mutex_);
    fresh = cluster_.owners_.emplace(spec.name, owner).second;
  }
  Status status = fresh
                      ? cluster_.fleet_->Launch(granted)
                      : AlreadyExists(fmt::format("a process named '{}' runs already", spec.name));
  if (fresh && !status.ok()) {
    cluster_.Forget(spec.name);
  }
  if (worker && !status.ok()) {
    cluster_.room_->WorkerEnded(job_, owner.memory_bytes, false);
  }
  return status;
}

void LocalCluster::Share::Report(uint32_t workers, double rows_per_second, double rows_left) {
  cluster_.room_->Report(job_, workers, rows_per_second, rows_left);
}

Status LocalCluster::Share::Stop(const std::string& name, double grace_seconds) {
  return cluster_.fleet_->Stop(name, grace_seconds);
}

LocalCluster::Share::~Share() {
  std::vector<std::string> left;
  {
    const MutexLock lock(cluster_.mutex_);
    for (const auto& [name, owner] : cluster_.owners_) {
      if (owner.listener == listener_) {
        left.push_back(name);
      }
    }
  }
  for (const std::string& name : left) {
    const Status status = cluster_.fleet_->Stop(name, 0);
    if (!status.ok()) {
      log::Debug("ending {}: {}", name, status.message());  // it has just ended on its own
    }
  }
  {
    MutexLock lock(cluster_.mutex_);
    for (const std::string& name : left) {
      while (cluster_.owners_.contains(name) && cluster_.owners_.at(name).listener == listener_) {
        cluster_.gone_.wait(lock.native());
      }
    }
  }
  cluster_.room_->Leave(job_);
}

}  // namespace sluice::executor
