#include "k8s/pod_fleet.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/log.h"
#include "k8s/seconds_internal.h"

namespace sluice::k8s {
namespace {

// How long to wait before a temporarily refused request is repeated.
constexpr double kFirstRetrySeconds = 1, kLongestRetrySeconds = 10;
constexpr double kLongestGrace = 3600;
// After a process was killed its kubelet has said so in this time, or is gone.
constexpr double kKubeletSeconds = 4;
// How long the end of a fleet waits for its deletions.
constexpr auto kDeletionTime = std::chrono::seconds(2);

// Retries wait by a clock that may not be the system's.
constexpr auto kPollInterval = std::chrono::milliseconds(100);

double RetrySeconds(int refusals) {
  return std::min(kLongestRetrySeconds, kFirstRetrySeconds * std::pow(2.0, std::min(refusals, 8)));
}

// A temporary failure: the fleet continues with the processes that it has.
bool MayWorkLater(Fault fault) {
  switch (fault) {
    case Fault::kQuota:
    case Fault::kTooManyRequests:
    case Fault::kServer:
    case Fault::kUnreachable:
    case Fault::kDamaged:
    case Fault::kDeadline:
    case Fault::kUnauthorized:
    case Fault::kConflict:
    case Fault::kAlreadyExists:  // an object of that name is still being deleted
      return true;
    default:
      return false;
  }
}

}  // namespace

Result<std::unique_ptr<PodFleet>> PodFleet::Start(ApiClient& client, PodShape shape,
                                                  std::string job_uid, const std::stop_token& stop,
                                                  MayWrite may_write) {
  std::unique_ptr<PodFleet> fleet(
      new PodFleet(client, std::move(shape), std::move(job_uid), std::move(may_write)));
  PodFleet* const self = fleet.get();
  Selection selection{kPods, self->shape_.namespace_name,
                      fmt::format("{}={}", kJobLabel, self->job_uid_)};
  ASSIGN_OR_RETURN(self->watch_,
                   ObjectWatch::Start(
                       client, std::move(selection),
                       [self](const ObjectChange& change) { self->OnChange(change); }, stop));
  {
    const MutexLock lock(self->mutex_);
    for (const auto& [name, pod] : self->pods_) {
      if (!pod.story.ended()) {
        self->adopted_.push_back({name, pod.identity});
      }
    }
  }
  self->making_ = std::jthread([self](const std::stop_token& ended) {
    while (!ended.stop_requested()) {
      const std::vector<std::string> names = self->Due(true, ended);
      if (self->WaitToWrite(ended)) {
        self->Create(names, ended);
      }
    }
  });
  self->deleting_ = std::jthread([self](const std::stop_token& ended) {
    while (!ended.stop_requested()) {
      const std::vector<std::string> names = self->Due(false, ended);
      if (self->WaitToWrite(ended)) {
        self->Delete(names, ended);
      }
      const MutexLock lock(self->mutex_);
      self->is_deleting_ = false;
      self->Changed();
    }
  });
  self->delivering_ =
      std::jthread([self](const std::stop_token& ended) { self->DeliverEvents(ended); });
  return fleet;
}

PodFleet::PodFleet(ApiClient& client, PodShape shape, std::string job_uid, MayWrite may_write)
    : client_(client),
      shape_(std::move(shape)),
      job_uid_(std::move(job_uid)),
      may_write_(std::move(may_write)) {}

bool PodFleet::WaitToWrite(const std::stop_token& stop) const {
  while (!stop.stop_requested() && may_write_ && !may_write_(stop)) {
    std::this_thread::sleep_for(kPollInterval);
  }
  return !stop.stop_requested();
}

// The pods that are to be deleted: nobody else does it before a suspended job goes on.
PodFleet::~PodFleet() {
  {
    MutexLock lock(mutex_);
    const auto all_sent = [this]() NO_THREAD_SAFETY_ANALYSIS {
      return !is_deleting_ && left_over_.empty() &&
             std::none_of(pods_.begin(), pods_.end(), [](const auto& pod) {
               return pod.second.delete_grace && !pod.second.deleting;
             });
    };
    changed_.wait_for(lock.native(), kDeletionTime, all_sent);
  }
  for (std::jthread* const thread : {&making_, &deleting_, &delivering_}) {
    thread->request_stop();
  }
  watch_.reset();
}

std::string PodFleet::NodeOf(const std::string& name) const {
  const MutexLock lock(mutex_);
  const auto found = pods_.find(name);
  return found == pods_.end() ? "" : found->second.node;
}

void PodFleet::Watch(Watcher watcher) {
  const MutexLock lock(mutex_);
  watcher_ = std::move(watcher);
  Changed();
}

Status PodFleet::Launch(const elastic::ProcessSpec& spec) {
  const PodIdentity identity{job_uid_, spec.role, spec.incarnation, spec.server_index};
  // Errors in the request are returned to the caller at once.
  RETURN_IF_ERROR(BuildPod(shape_, identity, spec, SecretName(spec)).status());
  RETURN_IF_ERROR(secrets_.Build(shape_, identity, spec).status());
  const MutexLock lock(mutex_);
  Pod pod{identity, PodEvents(spec.name, spec.role, false), spec};
  const auto found = pods_.find(spec.name);
  if (found != pods_.end()) {
    if (!found->second.story.ended()) {
      return AlreadyExists(fmt::format("a pod named '{}' already exists", spec.name));
    }
    // It has ended; its name is free once the API server has forgotten it.
    pod.before = found->second.uid;
    left_over_.push_back({kPods, shape_.namespace_name, spec.name, pod.before, 1});
    pods_.erase(found);
  }
  pods_.emplace(spec.name, std::move(pod));
  Changed();
  return OkStatus();
}

Status PodFleet::Stop(const std::string& name, double grace_seconds) {
  const MutexLock lock(mutex_);
  const auto found = pods_.find(name);
  if (found == pods_.end() || found->second.story.ended()) {
    return NotFound(fmt::format("no pod '{}' in the fleet", name));
  }
  Pod& pod = found->second;
  if (pod.spec && !pod.creating && pod.refusals == 0) {  // not requested yet
    Report(pod.story.OnGone());
    pods_.erase(found);
    return OkStatus();
  }
  pod.story.OnStopped();
  DeleteSoon(pod, static_cast<int>(std::ceil(std::clamp(grace_seconds, 1.0, kLongestGrace))));
  return OkStatus();
}

void PodFleet::Changed() {
  ++changes_;
  changed_.notify_all();
}

void PodFleet::DeleteSoon(Pod& pod, int grace_seconds) {
  if (!pod.delete_grace || grace_seconds < *pod.delete_grace) {
    pod.delete_grace = grace_seconds;
    pod.ends_by = client_.clock().Now() + Seconds(grace_seconds + kKubeletSeconds);
    pod.deleting = false;
    pod.try_again = {};
    Changed();
  }
}

void PodFleet::TryAgain(Pod& pod) {
  pod.try_again = client_.clock().Now() + Seconds(RetrySeconds(pod.refusals++));
  Changed();
}

void PodFleet::Report(std::vector<elastic::FleetEvent> events) {
  std::move(events.begin(), events.end(), std::back_inserter(events_));
  Changed();
}

void PodFleet::OnChange(const ObjectChange& change) {
  const Object& object = change.object;
  const std::optional<PodIdentity> identity = IdentityOf(object.labels);
  const Result<PodState> state = ReadPodState(object.json);
  const bool gone = change.kind == ObjectChange::Kind::kGone;
  if (!identity || !state.ok()) {
    log::Warn("kubernetes pod is not ours name={}", object.name);
    return;
  }
  const MutexLock lock(mutex_);
  auto found = pods_.find(object.name);
  if (found == pods_.end()) {
    if (gone) {
      return;
    }
    const bool runs = state->phase == PodState::Phase::kRunning;
    Pod adopted{*identity, PodEvents(object.name, identity->role, runs)};
    adopted.uid = object.uid;
    found = pods_.emplace(object.name, std::move(adopted)).first;
  }
  Pod& pod = found->second;
  if (pod.uid.empty() && pod.before != object.uid &&
      pod.identity.incarnation == identity->incarnation) {
    pod.uid = object.uid;  // the watch was faster than the answer to the creation
  }
  if (pod.uid != object.uid) {
    return;  // an earlier one with the same name
  }
  pod.node = state->node;
  pod.accepted = state->accepted;
  const bool had_ended = pod.story.ended();
  Report(pod.story.OnState(*state));
  if (gone) {
    Report(pod.story.OnGone());
  }
  if (gone) {
    pods_.erase(found);
  } else if (!had_ended && pod.story.ended() &&
             !(state->over && state->exit_class == elastic::ExitClass::kApplication)) {
    // Deleted, which also ends its sidecars and the kubelet's retries. One that failed by itself
    // takes no other's place, and its logs may be of interest.
    DeleteSoon(pod, shape_.grace_seconds);
  }
}

void PodFleet::WaitForChange(MutexLock& lock, const std::stop_token& stop, bool look) {
  const auto changed = [this, seen = changes_]()
                           NO_THREAD_SAFETY_ANALYSIS { return changes_ != seen; };
  if (look) {
    changed_.wait_for(lock.native(), stop, kPollInterval, changed);
  } else {
    changed_.wait(lock.native(), stop, changed);
  }
}

bool PodFleet::LookAtNodes(TimePoint now) {
  bool again = false;
  for (auto& [name, pod] : pods_) {
    if (pod.story.ended() || pod.node.empty()) {
      continue;
    }
    if (pod.ends_by) {
      again = again || now < *pod.ends_by;
      if (pod.accepted && now >= *pod.ends_by && !suspects_.Has(pod.node, now)) {
        log::Warn("kubernetes node={} says nothing of the end of pod={}", pod.node, name);
        suspects_.Add(pod.node, now);
      }
    } else if (!pod.accepted) {
      pod.placed_at = pod.placed_at.value_or(now);
      again = true;
      if (SecondsBetween(*pod.placed_at, now) >= suspects_.PatienceSeconds(pod.node, now)) {
        log::Warn("kubernetes node={} says nothing of pod={}", pod.node, name);
        suspects_.Add(pod.node, now);
        Report(pod.story.OnNodeLost());
        DeleteSoon(pod, shape_.grace_seconds);
      }
    }
  }
  return again;
}

std::vector<std::string> PodFleet::Due(bool to_make, const std::stop_token& stop) {
  MutexLock lock(mutex_);
  std::vector<std::string> names;
  while (!stop.stop_requested()) {
    const TimePoint now = client_.clock().Now();
    bool later = !to_make && LookAtNodes(now);
    for (auto& [name, pod] : pods_) {
      const bool wanted = to_make ? pod.spec && !pod.delete_grace && !pod.creating
                                  : pod.delete_grace && !pod.creating && !pod.deleting;
      later = later || (wanted && pod.try_again > now);
      if (wanted && pod.try_again <= now) {
        (to_make ? pod.creating : pod.deleting) = true;
        names.push_back(name);
      }
    }
    if (!names.empty() || (!to_make && !left_over_.empty())) {
      is_deleting_ = is_deleting_ || !to_make;
      break;
    }
    WaitForChange(lock, stop, later);
  }
  return names;
}

void PodFleet::PreferNodes(std::vector<std::string> nodes) {
  const MutexLock lock(mutex_);
  preferred_ = std::move(nodes);
}

void PodFleet::Create(const std::vector<std::string>& names, const std::stop_token& stop) {
  // A pod to create, and the Secret that it mounts.
  struct Wanted {
    std::string name, secret_name, json;
  };
  std::vector<Wanted> wanted;
  std::map<std::string, std::string> secrets;
  {
    const MutexLock lock(mutex_);
    PodShape shape = shape_;
    shape.avoided_nodes = suspects_.Names(client_.clock().Now());
    shape.worker_nodes = preferred_;
    for (const std::string& name : names) {
      const auto found = pods_.find(name);
      if (found == pods_.end() || !found->second.spec) {
        continue;
      }
      const Pod& pod = found->second;  // Launch has checked that both can be built
      const std::string secret = SecretName(*pod.spec);
      wanted.push_back({name, secret, BuildPod(shape, pod.identity, *pod.spec, secret).value()});
      secrets.emplace(secret, secrets_.Build(shape, pod.identity, *pod.spec).value());
    }
  }
  const std::map<std::string, ObjectAnswer> refused =
      secrets_.Create(client_, shape_.namespace_name, secrets, stop);
  std::vector<Creation> mounted;
  for (const Wanted& pod : wanted) {
    if (!refused.contains(pod.secret_name)) {
      mounted.push_back({kPods, shape_.namespace_name, pod.json});
    }
  }
  const std::vector<ObjectAnswer> made = CreateAll(client_, mounted, stop);
  if (stop.stop_requested()) {
    return;
  }
  const MutexLock lock(mutex_);
  size_t next = 0;
  for (const Wanted& pod : wanted) {
    const auto without = refused.find(pod.secret_name);
    OnCreated(pod.name, without == refused.end() ? made[next++] : without->second);
  }
}

void PodFleet::OnCreated(const std::string& name, const ObjectAnswer& answer) {
  const auto found = pods_.find(name);
  if (found == pods_.end()) {
    return;  // made, seen by the watch, and already gone
  }
  Pod& pod = found->second;
  pod.creating = false;
  Changed();
  if (answer.ok()) {
    pod.uid = answer.object.uid;
    pod.spec.reset();
    pod.refusals = 0;
    return;
  }
  if (MayWorkLater(answer.fault)) {
    if (!pod.delete_grace) {
      Report(pod.story.OnWaiting(answer.status.message()));
      TryAgain(pod);
    }
    return;
  }
  Report(pod.delete_grace ? pod.story.OnGone() : pod.story.OnRefused(answer.status.message()));
  pods_.erase(found);
}

// For pods whose creation had no answer and that are to be deleted: finds out whether they were
// made. A pod of another owner with the same name is left alone.
void PodFleet::FindUids(const std::vector<std::string>& names, const std::stop_token& stop) {
  for (const std::string& name : names) {
    PodIdentity identity;
    {
      const MutexLock lock(mutex_);
      const auto found = pods_.find(name);
      if (found == pods_.end() || !found->second.uid.empty()) {
        continue;
      }
      identity = found->second.identity;
    }
    const ObjectAnswer there = GetObject(client_, kPods, shape_.namespace_name, name, stop);
    const std::optional<PodIdentity> who = IdentityOf(there.object.labels);
    const bool ours = there.ok() && who && who->job_uid == identity.job_uid &&
                      who->incarnation == identity.incarnation;
    const MutexLock lock(mutex_);
    const auto found = pods_.find(name);
    if (found == pods_.end()) {
      continue;
    }
    Pod& pod = found->second;
    if (ours && there.object.uid != pod.before) {
      pod.uid = there.object.uid;
      pod.spec.reset();
    } else if (there.ok() || there.fault == Fault::kNotFound) {
      Report(pod.story.OnGone());
      pods_.erase(found);
    } else {
      pod.deleting = false;
      TryAgain(pod);
    }
  }
}

void PodFleet::Delete(const std::vector<std::string>& names, const std::stop_token& stop) {
  FindUids(names, stop);
  std::vector<Deletion> deletions;
  {
    const MutexLock lock(mutex_);
    deletions = std::exchange(left_over_, {});
    for (const std::string& name : names) {
      const auto found = pods_.find(name);
      if (found != pods_.end() && !found->second.uid.empty()) {
        deletions.push_back({kPods, shape_.namespace_name, name, found->second.uid,
                             found->second.delete_grace.value_or(1)});
      }
    }
  }
  const std::vector<ApiAnswer> answers = DeleteAll(client_, deletions, stop);
  if (stop.stop_requested()) {
    return;
  }
  const MutexLock lock(mutex_);
  for (size_t i = 0; i < answers.size(); ++i) {
    if (answers[i].ok()) {
      continue;
    }
    log::Warn("kubernetes deletion failed error={}", answers[i].status.message());
    const auto found = pods_.find(deletions[i].name);
    if (found != pods_.end() && found->second.uid == deletions[i].uid) {
      found->second.deleting = false;
      TryAgain(found->second);
    }
  }
}

void PodFleet::DeliverEvents(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    Watcher watcher;
    std::deque<elastic::FleetEvent> events;
    {
      MutexLock lock(mutex_);
      while (!stop.stop_requested() && (!watcher_ || events_.empty())) {
        WaitForChange(lock, stop, false);
      }
      watcher = watcher_;
      events.swap(events_);
    }
    for (const elastic::FleetEvent& event : events) {
      if (!stop.stop_requested()) {
        watcher(event);
      }
    }
  }
}

}  // namespace sluice::k8s
