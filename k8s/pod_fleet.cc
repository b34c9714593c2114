#include "k8s/pod_fleet.h"

#include <fmt/core.h>

#include <chrono>
#include <deque>
#include <optional>
#include <utility>

#include "base/log.h"
#include "k8s/pod_labels.h"
#include "k8s/pod_state.h"

namespace sluice::k8s {
namespace {

// How long the end of a fleet waits for its deletions.
constexpr auto kDeletionTime = std::chrono::seconds(2);

// Retries wait by a clock that may not be the system's.
constexpr auto kPollInterval = std::chrono::milliseconds(100);

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
    for (const auto& [name, identity] : self->pods_.Running()) {
      self->adopted_.push_back({name, identity});
    }
  }
  self->making_ = std::jthread([self](const std::stop_token& ended) {
    while (!ended.stop_requested()) {
      const std::vector<std::string> names = self->Due(true, ended);
      if (!self->WaitToWrite(ended)) {
        return;
      }
      if (names.empty()) {
        self->secrets_.Know(self->TakeLaunched());
        self->secrets_.CreateAgain(self->client_, self->shape_.namespace_name, ended);
      } else {
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
      may_write_(std::move(may_write)),
      pods_(shape_.namespace_name, shape_.grace_seconds, [this]() REQUIRES(mutex_) { Changed(); }) {
}

bool PodFleet::WaitToWrite(const std::stop_token& stop) const {
  while (!stop.stop_requested() && may_write_ && !may_write_(stop)) {
    std::this_thread::sleep_for(kPollInterval);
  }
  return !stop.stop_requested();
}

// The pods that are to be deleted: nobody else does it before a suspended job goes on.
PodFleet::~PodFleet() {
  making_ = {};  // whether its last ones were made is found out when they are deleted
  {
    MutexLock lock(mutex_);
    pods_.OnCreationsBrokenOff();
    const auto all_sent = [this]() REQUIRES(mutex_) {
      return !is_deleting_ && pods_.AllDeletionsSent();
    };
    changed_.wait_for(lock.native(), kDeletionTime, all_sent);
  }
  for (std::jthread* const thread : {&deleting_, &delivering_}) {
    thread->request_stop();
  }
  watch_.reset();
}

std::string PodFleet::NodeOf(const std::string& name) const {
  const MutexLock lock(mutex_);
  return pods_.NodeOf(name);
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
  ASSIGN_OR_RETURN(std::string secret, SharedSecrets::Build(shape_, identity, spec));
  const MutexLock lock(mutex_);
  launched_.emplace(SecretName(spec), std::move(secret));
  return pods_.Launch(identity, spec);
}

// An adopted pod's Secret was made by somebody else, who may be gone.
std::map<std::string, std::string> PodFleet::TakeLaunched() {
  const MutexLock lock(mutex_);
  return std::exchange(launched_, {});
}

Status PodFleet::Stop(const std::string& name, double grace_seconds) {
  const MutexLock lock(mutex_);
  return pods_.Stop(name, grace_seconds, client_.clock().Now());
}

void PodFleet::Changed() {
  ++changes_;
  changed_.notify_all();
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
  pods_.OnState(object, *identity, *state, gone, client_.clock().Now());
}

void PodFleet::WaitForChange(MutexLock& lock, const std::stop_token& stop, bool look) {
  const auto changed = [this, seen = changes_]() REQUIRES(mutex_) { return changes_ != seen; };
  if (look) {
    changed_.wait_for(lock.native(), stop, kPollInterval, changed);
  } else {
    changed_.wait(lock.native(), stop, changed);
  }
}

std::vector<std::string> PodFleet::Due(bool to_make, const std::stop_token& stop) {
  MutexLock lock(mutex_);
  while (!stop.stop_requested()) {
    const TimePoint now = client_.clock().Now();
    const bool look = to_make ? pods_.has_starting() : pods_.LookAtNodes(now);
    FleetPods::Due due = pods_.TakeDue(to_make, now);
    const bool due_without_names =
        to_make ? look && secrets_.MayBeMissing(now) : pods_.has_left_over();
    if (!due.names.empty() || due_without_names) {
      is_deleting_ = is_deleting_ || !to_make;
      return std::move(due.names);
    }
    WaitForChange(lock, stop, look || due.later);
  }
  return {};
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
    shape.avoided_nodes = pods_.SuspectNodeNames(client_.clock().Now());
    shape.worker_nodes = preferred_;
    for (const std::string& name : names) {
      const std::optional<FleetPods::Order> pod = pods_.OrderOf(name);
      if (!pod) {
        continue;
      }
      // Launch has checked that both can be built.
      const std::string secret = SecretName(*pod->spec);
      wanted.push_back({name, secret, BuildPod(shape, pod->identity, *pod->spec, secret).value()});
      secrets.emplace(secret, secrets_.Build(shape, pod->identity, *pod->spec).value());
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
    pods_.OnCreated(pod.name, without == refused.end() ? made[next++] : without->second,
                    client_.clock().Now());
  }
}

// For pods whose creation had no answer and that are to be deleted: finds out whether they were
// made.
void PodFleet::FindUids(const std::vector<std::string>& names, const std::stop_token& stop) {
  for (const std::string& name : names) {
    std::optional<PodIdentity> identity;
    {
      const MutexLock lock(mutex_);
      identity = pods_.WithoutUid(name);
    }
    if (!identity) {
      continue;
    }
    const ObjectAnswer there = GetObject(client_, kPods, shape_.namespace_name, name, stop);
    const MutexLock lock(mutex_);
    pods_.OnLookedUp(name, *identity, there, client_.clock().Now());
  }
}

void PodFleet::Delete(const std::vector<std::string>& names, const std::stop_token& stop) {
  FindUids(names, stop);
  std::vector<Deletion> deletions;
  {
    const MutexLock lock(mutex_);
    deletions = pods_.TakeDeletions(names);
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
    pods_.OnDeletionFailed(deletions[i], client_.clock().Now());
  }
}

void PodFleet::DeliverEvents(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    Watcher watcher;
    std::deque<elastic::FleetEvent> events;
    {
      MutexLock lock(mutex_);
      while (!stop.stop_requested() && (!watcher_ || !pods_.has_events())) {
        WaitForChange(lock, stop, false);
      }
      watcher = watcher_;
      events = pods_.TakeEvents();
    }
    for (const elastic::FleetEvent& event : events) {
      if (!stop.stop_requested()) {
        watcher(event);
      }
    }
  }
}

}  // namespace sluice::k8s
