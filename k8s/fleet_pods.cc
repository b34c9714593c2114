#include "k8s/fleet_pods.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <iterator>
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

std::string WithHint(const Status& status) {
  const std::string& hint = status.diagnostics().front().hint;
  return hint.empty() ? status.message() : fmt::format("{} ({})", status.message(), hint);
}

}  // namespace

FleetPods::FleetPods(std::string namespace_name, int grace_seconds, std::function<void()> changed)
    : namespace_name_(std::move(namespace_name)),
      grace_seconds_(grace_seconds),
      changed_(std::move(changed)) {}

std::map<std::string, PodIdentity> FleetPods::Running() const {
  std::map<std::string, PodIdentity> running;
  for (const auto& [name, pod] : pods_) {
    if (!pod.story.ended()) {
      running.emplace(name, pod.identity);
    }
  }
  return running;
}

std::string FleetPods::NodeOf(const std::string& name) const {
  const auto found = pods_.find(name);
  return found == pods_.end() ? "" : found->second.node;
}

Status FleetPods::Launch(const PodIdentity& identity, const elastic::ProcessSpec& spec) {
  Pod pod{identity, PodEvents(spec.name, spec.role, false), spec};
  const auto found = pods_.find(spec.name);
  if (found != pods_.end()) {
    Pod& there = found->second;
    if (!there.story.ended() && !there.delete_grace && there.identity == identity &&
        std::exchange(there.adopted, false)) {
      Report(there.story.OnLaunched());
      return OkStatus();
    }
    if (!there.story.ended()) {
      return AlreadyExists(fmt::format("a pod named '{}' already exists", spec.name));
    }
    // It has ended; its name is free once the API server has forgotten it.
    pod.before = there.uid;
    left_over_.push_back({kPods, namespace_name_, spec.name, pod.before, 1});
    pods_.erase(found);
  }
  pods_.emplace(spec.name, std::move(pod));
  changed_();
  return OkStatus();
}

Status FleetPods::Stop(const std::string& name, double grace_seconds, TimePoint now) {
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
  DeleteSoon(pod, static_cast<int>(std::ceil(std::clamp(grace_seconds, 1.0, kLongestGrace))), now);
  return OkStatus();
}

void FleetPods::DeleteSoon(Pod& pod, int grace_seconds, TimePoint now) {
  if (!pod.delete_grace || grace_seconds < *pod.delete_grace) {
    pod.delete_grace = grace_seconds;
    pod.ends_by = now + Seconds(grace_seconds + kKubeletSeconds);
    pod.deleting = false;
    pod.try_again = {};
    changed_();
  }
}

void FleetPods::TryAgain(Pod& pod, TimePoint now) {
  pod.try_again = now + Seconds(RetrySeconds(pod.refusals++));
  changed_();
}

void FleetPods::Report(std::vector<elastic::FleetEvent> events) {
  std::move(events.begin(), events.end(), std::back_inserter(events_));
  changed_();
}

std::deque<elastic::FleetEvent> FleetPods::TakeEvents() {
  return std::exchange(events_, {});
}

void FleetPods::OnState(const Object& object, const PodIdentity& identity, const PodState& state,
                        bool gone, TimePoint now) {
  auto found = pods_.find(object.name);
  if (found == pods_.end()) {
    if (gone) {
      return;
    }
    const bool runs = state.phase == PodState::Phase::kRunning;
    Pod adopted{identity, PodEvents(object.name, identity.role, runs)};
    adopted.uid = object.uid;
    adopted.adopted = true;
    found = pods_.emplace(object.name, std::move(adopted)).first;
  }
  Pod& pod = found->second;
  if (pod.uid.empty() && pod.before != object.uid &&
      pod.identity.incarnation == identity.incarnation) {
    pod.uid = object.uid;  // the watch was faster than the answer to the creation
  }
  if (pod.uid != object.uid) {
    return;  // an earlier one with the same name
  }
  pod.node = state.node;
  pod.accepted = state.accepted;
  pod.starting = state.phase == PodState::Phase::kWaiting && !state.node.empty() && !state.leaving;
  // Between two attempts the kubelet may say something else for a moment.
  if (state.lacks_image) {
    pod.without_image = pod.without_image.value_or(now);
    pod.waiting_for = state.waiting_for;
  } else if (state.phase != PodState::Phase::kWaiting) {
    pod.without_image.reset();
  }
  const bool had_ended = pod.story.ended();
  Report(pod.story.OnState(state));
  if (gone) {
    Report(pod.story.OnGone());
  }
  if (gone) {
    pods_.erase(found);
  } else if (!had_ended && pod.story.ended() &&
             !(state.over && state.exit_class == elastic::ExitClass::kApplication)) {
    // Deleted, which also ends its sidecars and the kubelet's retries. One that failed by itself
    // takes no other's place, and its logs may be of interest.
    DeleteSoon(pod, grace_seconds_, now);
  }
}

bool FleetPods::LookAtNodes(TimePoint now) {
  bool again = false;
  for (auto& [name, pod] : pods_) {
    if (pod.story.ended() || pod.node.empty()) {
      continue;
    }
    if (pod.without_image && !pod.ends_by) {
      again = true;
      if (SecondsBetween(*pod.without_image, now) >= kImagePatienceSeconds) {
        Report(pod.story.OnRefused(ImageMissing(pod.waiting_for)));
        DeleteSoon(pod, grace_seconds_, now);
        continue;
      }
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
        DeleteSoon(pod, grace_seconds_, now);
      }
    }
  }
  return again;
}

FleetPods::Due FleetPods::TakeDue(bool to_make, TimePoint now) {
  Due due;
  for (auto& [name, pod] : pods_) {
    const bool wanted = to_make ? pod.spec && !pod.delete_grace && !pod.creating
                                : pod.delete_grace && !pod.creating && !pod.deleting;
    due.later = due.later || (wanted && pod.try_again > now);
    if (wanted && pod.try_again <= now) {
      (to_make ? pod.creating : pod.deleting) = true;
      due.names.push_back(name);
    }
  }
  return due;
}

bool FleetPods::AllDeletionsSent() const {
  return left_over_.empty() && std::none_of(pods_.begin(), pods_.end(), [](const auto& pod) {
           return pod.second.delete_grace && !pod.second.deleting;
         });
}

bool FleetPods::has_starting() const {
  return std::any_of(pods_.begin(), pods_.end(), [](const auto& pod) {
    return pod.second.starting && !pod.second.delete_grace;
  });
}

std::optional<FleetPods::Order> FleetPods::OrderOf(const std::string& name) const {
  const auto found = pods_.find(name);
  if (found == pods_.end() || !found->second.spec) {
    return std::nullopt;
  }
  return Order{found->second.identity, &*found->second.spec};
}

void FleetPods::OnCreated(const std::string& name, const ObjectAnswer& answer, TimePoint now) {
  const auto found = pods_.find(name);
  if (found == pods_.end()) {
    return;  // made, seen by the watch, and already gone
  }
  Pod& pod = found->second;
  pod.creating = false;
  changed_();
  // The one that has ended is still there, and may have the same labels.
  const bool taken = !pod.before.empty() &&
                     (answer.fault == Fault::kAlreadyExists || answer.object.uid == pod.before);
  if (taken) {
    left_over_.push_back({kPods, namespace_name_, name, pod.before, 1});
  }
  if (answer.ok() && !taken) {
    pod.uid = answer.object.uid;
    pod.spec.reset();
    pod.refusals = 0;
    return;
  }
  if (taken || MayWorkLater(answer.fault)) {
    if (!pod.delete_grace) {
      Report(pod.story.OnWaiting(
          answer.ok() ? fmt::format("{}: an earlier pod of that name is still there", name)
                      : std::string(answer.status.message())));
      TryAgain(pod, now);
    }
    return;
  }
  Report(pod.delete_grace ? pod.story.OnGone() : pod.story.OnRefused(WithHint(answer.status)));
  pods_.erase(found);
}

void FleetPods::OnCreationsBrokenOff() {
  for (auto& [name, pod] : pods_) {
    pod.creating = false;
  }
  changed_();
}

std::optional<PodIdentity> FleetPods::WithoutUid(const std::string& name) const {
  const auto found = pods_.find(name);
  if (found == pods_.end() || !found->second.uid.empty()) {
    return std::nullopt;
  }
  return found->second.identity;
}

void FleetPods::OnLookedUp(const std::string& name, const PodIdentity& identity,
                           const ObjectAnswer& there, TimePoint now) {
  const std::optional<PodIdentity> who = IdentityOf(there.object.labels);
  const bool ours = there.ok() && who && who->job_uid == identity.job_uid &&
                    who->incarnation == identity.incarnation;
  const auto found = pods_.find(name);
  if (found == pods_.end()) {
    return;
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
    TryAgain(pod, now);
  }
}

std::vector<Deletion> FleetPods::TakeDeletions(const std::vector<std::string>& names) {
  std::vector<Deletion> deletions = std::exchange(left_over_, {});
  for (const std::string& name : names) {
    const auto found = pods_.find(name);
    if (found != pods_.end() && !found->second.uid.empty()) {
      deletions.push_back({kPods, namespace_name_, name, found->second.uid,
                           found->second.delete_grace.value_or(1)});
    }
  }
  return deletions;
}

void FleetPods::OnDeletionFailed(const Deletion& deletion, TimePoint now) {
  const auto found = pods_.find(deletion.name);
  if (found != pods_.end() && found->second.uid == deletion.uid) {
    found->second.deleting = false;
    TryAgain(found->second, now);
  }
}

}  // namespace sluice::k8s
