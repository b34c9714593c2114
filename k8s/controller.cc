#include "k8s/controller.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "elastic/fleet/share_reason.h"
#include "k8s/changed_grants.h"
#include "k8s/cluster_objects.h"
#include "k8s/rfc3339.h"
#include "k8s/rights.h"
#include "k8s/seconds_internal.h"
#include "k8s/training_job.h"
#include "k8s/training_job_change.h"
#include "k8s/training_job_status.h"

namespace sluice::k8s {
namespace {

constexpr int kLeaseSeconds = 8;
constexpr double kRoundSeconds = kLeaseSeconds / 4.0;
// Changes that come together are one decision; a status changes once a second for each job, and
// matters less.
constexpr double kSettleSeconds = 0.1;
constexpr double kStatusSeconds = 1;
// A grant that could not be written is decided again.
constexpr double kRetrySeconds = 1;
constexpr double kLookSeconds = 0.1;
// TrainingJobs told in a row that no gateway takes them, before decisions have their turn again.
constexpr size_t kMostTold = 8;
constexpr size_t kInstanceSize = 19;  // "controller-0123abcd": part of the names of Events

}  // namespace

Controller::Controller(ApiClient& client, ControllerOptions options)
    : client_(client),
      options_(std::move(options)),
      claim_(client, {.namespace_name = options_.namespace_name,
                      .name = kControllerLease,
                      .holder = options_.holder,
                      .duration_seconds = kLeaseSeconds}),
      events_(client, {.namespace_name = options_.namespace_name,
                       .component = AccountName(Account::kController),
                       .instance = options_.holder.substr(0, kInstanceSize)}) {}

Controller::~Controller() = default;

Status Controller::Run(const std::stop_token& stop) {
  RETURN_IF_ERROR(Follow(kNodes, &ClusterView::OnNode, kSettleSeconds, stop));
  RETURN_IF_ERROR(Follow(kQuotas, &ClusterView::OnQuota, kSettleSeconds, stop));
  RETURN_IF_ERROR(Follow(kTrainingJobs, &ClusterView::OnTrainingJob, kStatusSeconds, stop));
  RETURN_IF_ERROR(Follow(kPods, &ClusterView::OnPod, kSettleSeconds, stop));
  while (!stop.stop_requested()) {
    Lead(stop);
    TellUnattended(stop);
    bool decide = false;
    {
      const MutexLock lock(mutex_);
      decide = figures_.leads && due_ && client_.clock().Now() >= *due_;
    }
    if (decide && claim_.Held()) {
      Decide(stop);
    } else {
      WaitForWork(stop);
    }
  }
  std::vector<std::unique_ptr<ObjectWatch>> watches;
  {
    const MutexLock lock(mutex_);
    watches.swap(watches_);
  }
  watches.clear();
  const Status released = claim_.Release({});
  if (!released.ok()) {
    log::Warn("the controller's Lease was not released: {}", released.ToString());
  }
  return OkStatus();
}

// `patience`: how soon after a change of an existing object it is decided; at once after the
// appearance or the end of one.
Status Controller::Follow(const Resource& resource, Reader reader, double patience_seconds,
                          const std::stop_token& stop) {
  auto heard = [this, reader, patience_seconds](const ObjectChange& change) {
    const double patience =
        change.kind == ObjectChange::Kind::kChanged ? patience_seconds : kSettleSeconds;
    const MutexLock lock(mutex_);
    (view_.*reader)(change);
    if (reader == &ClusterView::OnTrainingJob) {
      unattended_.OnTrainingJob(change, client_.clock().Now());
    }
    const TimePoint due = client_.clock().Now() + Seconds(patience);
    due_ = std::min(due_.value_or(due), due);
    news_ = true;
    changed_.notify_all();
  };
  ASSIGN_OR_RETURN(std::unique_ptr<ObjectWatch> watch,
                   ObjectWatch::Start(client_, {resource, "", ""}, std::move(heard), stop));
  const MutexLock lock(mutex_);
  watches_.push_back(std::move(watch));
  return OkStatus();
}

// Until something may have to be done; the clock is looked at ten times a second.
void Controller::WaitForWork(const std::stop_token& stop) {
  MutexLock lock(mutex_);
  const TimePoint now = client_.clock().Now();
  const TimePoint longest = Seconds(kLookSeconds);
  const TimePoint wait = std::clamp(due_.value_or(now + longest) - now, TimePoint(1), longest);
  changed_.wait_for(lock.native(), stop, claim_.Held() ? wait : longest,
                    [this]() REQUIRES(mutex_) { return std::exchange(news_, false); });
}

void Controller::Lead(const std::stop_token& stop) {
  const TimePoint now = client_.clock().Now();
  if (now < next_round_) {
    return;
  }
  next_round_ = now + Seconds(kRoundSeconds);
  const Result<LeaseClaim::View> view = claim_.Round(stop);
  if (!view.ok() && !stop.stop_requested()) {
    log::Warn("the controller's Lease: {}", view.status().ToString());
  }
  const bool leads = claim_.Held();
  const MutexLock lock(mutex_);
  if (leads != figures_.leads) {
    log::Info("this controller {}", leads ? "acts" : "waits: another one acts");
    figures_.leads = leads;
    figures_.Forget();
    history_ = {};
    due_ = now;
  }
}

void Controller::Decide(const std::stop_token& stop) {
  const TimePoint begun = client_.clock().Now();
  ClusterView::Snapshot snapshot;
  {
    const MutexLock lock(mutex_);
    snapshot = view_.Make();
    due_.reset();
  }
  const elastic::ScalingDecision decision =
      elastic::Autoscale(snapshot.state, options_.autoscaler, history_, begun);
  history_ = decision.history;
  const std::map<size_t, Grant> changed = ChangedGrants(snapshot, decision);
  {
    const MutexLock lock(mutex_);
    figures_.OnDecision(snapshot, decision, changed, begun,
                        SecondsBetween(begun, client_.clock().Now()));
    if (decision.look_again) {
      due_ = std::min(due_.value_or(*decision.look_again), *decision.look_again);
    }
  }
  for (const auto& [index, grant] : changed) {
    if (stop.stop_requested() || !claim_.Held()) {
      return;
    }
    Write(snapshot.jobs[index], grant, stop);
  }
}

void Controller::TellUnattended(const std::stop_token& stop) {
  std::vector<UnattendedJobs::Job> due;
  if (claim_.Held()) {
    const MutexLock lock(mutex_);
    due = unattended_.TakeDue(client_.clock().Now(), kMostTold);
  }
  for (const UnattendedJobs::Job& job : due) {
    const Status told = Tell(job, stop);
    if (!told.ok() && !stop.stop_requested()) {
      log::Warn("{}/{} waits for a gateway, which it could not be told: {}", job.namespace_name,
                job.name, told.ToString());
    }
  }
}

Status Controller::Tell(const UnattendedJobs::Job& job, const std::stop_token& stop) {
  const std::string message = fmt::format(
      "no gateway has taken it: is there one in the namespace {0}, and is it ready? kubectl -n {0} "
      "get pods -l app.kubernetes.io/component=gateway",
      job.namespace_name);
  bool waits = false;
  const auto tell = [&](const Object& object, TrainingJobStatus& status) {
    waits = !IsAttended(object, status);
    if (waits) {
      SetCondition(status, kConditionQueued, true, kNoGateway, message, Rfc3339(WallMicros()));
    }
  };
  ASSIGN_OR_RETURN(const bool there, ChangeTrainingJobStatus(client_, job.namespace_name, job.name,
                                                             job.uid, tell, stop));
  if (there && waits) {
    events_.RecordIn(job.namespace_name, TrainingJobOwner(job.name, job.uid), true, kNoGateway,
                     message);
    log::Info("{}/{} waits for a gateway", job.namespace_name, job.name);
  }
  return OkStatus();
}

void Controller::Write(const ClusterView::Job& job, const Grant& grant,
                       const std::stop_token& stop) {
  const ObjectAnswer answer = PatchObject(client_, kTrainingJobs, job.namespace_name, job.name,
                                          "status", GrantPatch(grant), stop);
  const MutexLock lock(mutex_);
  if (answer.ok()) {
    ++figures_.grants;
    log::Info("{}/{}: {}", job.namespace_name, job.name, elastic::CountWorkers(grant.workers));
    return;
  }
  if (answer.fault == Fault::kNotFound) {
    return;  // it was deleted; the watch says so
  }
  ++figures_.failed_grants;
  log::Warn("the grant of {}/{} was not written: {}", job.namespace_name, job.name,
            answer.status.ToString());
  const TimePoint due = client_.clock().Now() + Seconds(kRetrySeconds);
  due_ = std::min(due_.value_or(due), due);
}

ControllerFigures Controller::figures() const {
  const MutexLock lock(mutex_);
  return figures_;
}

std::map<std::string, uint64_t> Controller::watch_restarts() const {
  const MutexLock lock(mutex_);
  std::map<std::string, uint64_t> all;
  for (const std::unique_ptr<ObjectWatch>& watch : watches_) {
    for (const auto& [reason, count] : watch->restarts()) {
      all[reason] += count;
    }
  }
  return all;
}

}  // namespace sluice::k8s
