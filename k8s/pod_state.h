#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "elastic/fleet/fleet.h"

namespace sluice::k8s {

// Our container in each of our pods; others beside it are sidecars, and none of our business.
inline constexpr std::string_view kContainerName = "sluice";

// PodState::waiting_for of one that nobody keeps waiting: each pod waits so for a moment.
inline constexpr std::string_view kWaitsForScheduler = "the scheduler";
inline constexpr std::string_view kWaitsForNode = "its node";

// What a pod's status means to a fleet. An end is our container's: sidecars may go on, and the
// pod's own end and disappearance come up to half a minute later.
struct PodState {
  enum class Phase { kWaiting, kRunning, kEnded };
  Phase phase = Phase::kWaiting;
  std::string waiting_for;  // "Unschedulable: 0/3 nodes are available: 3 Insufficient cpu."
  bool leaving = false;     // has a deletionTimestamp: deleted, drained, preempted
  bool over = false;        // nothing of the pod runs any more, nor will
  std::string node;
  std::string address;  // its IP; empty: it has none yet
  // Of kEnded.
  int exit_code = 0;
  elastic::ExitClass exit_class = elastic::ExitClass::kOk;
  std::string last_words;
};

// Pure. An error where `json` is no pod.
Result<PodState> ReadPodState(std::string_view json);

// The events of one pod: each change of its state is told once, however often it is seen, and
// nothing after its end. Pure.
class PodStory {
 public:
  // `adopted`: somebody was told already that it runs.
  PodStory(std::string name, elastic::Role role, bool adopted);

  std::vector<elastic::FleetEvent> OnState(const PodState& state);
  // It is no more: an end, where none was seen.
  std::vector<elastic::FleetEvent> OnGone();
  // It could not be made, or is not made yet, and why.
  std::vector<elastic::FleetEvent> OnRefused(const std::string& why);
  std::vector<elastic::FleetEvent> OnWaiting(const std::string& why, bool placed = false);
  // Whoever is told wants it away: that it leaves is no news.
  void OnStopped() { leaving_ = true; }

  bool ended() const { return ended_; }

 private:
  elastic::FleetEvent Event(elastic::FleetEvent::Kind kind) const;

  const std::string name_;
  const elastic::Role role_;
  bool started_, leaving_ = false, ended_ = false;
  std::string waiting_for_;
};

}  // namespace sluice::k8s
