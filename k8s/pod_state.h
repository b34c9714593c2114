#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "elastic/fleet/fleet.h"

namespace sluice::k8s {

// Our container in each of our pods; others are sidecars, which do not concern us.
inline constexpr std::string_view kContainerName = "sluice";

// PodState::waiting_for of a pod that is merely being scheduled, as each is for a moment.
inline constexpr std::string_view kWaitsForScheduler = "the scheduler";
inline constexpr std::string_view kWaitsForNode = "its node";
// The last words of one that somebody has deleted.
inline constexpr std::string_view kPodDeleted = "the pod was deleted";

// A pod's status as a fleet sees it. An end is that of our container: sidecars may continue, and
// the pod's own end and disappearance follow up to half a minute later.
struct PodState {
  enum class Phase { kWaiting, kRunning, kEnded };
  Phase phase = Phase::kWaiting;
  std::string waiting_for;   // "Unschedulable: 0/3 nodes are available: 3 Insufficient cpu."
  bool lacks_image = false;  // which its node could not pull so far
  bool leaving = false;      // has a deletionTimestamp: deleted, drained, preempted
  bool over = false;         // nothing in the pod runs any more, nor will
  bool accepted = false;     // its node's kubelet has said something about it
  std::string node;
  std::string address;  // its IP; empty: it has none yet
  // For kEnded.
  int exit_code = 0;
  elastic::ExitClass exit_class = elastic::ExitClass::kOk;
  std::string last_words;
};

// For so long an image is waited for.
inline constexpr double kImagePatienceSeconds = 300;
// Of a pod whose image was not there in that time; `why`: PodState::waiting_for.
std::string ImageMissing(const std::string& why);

// Pure. An error if `json` is not a pod.
Result<PodState> ReadPodState(std::string_view json);

// The events of one pod: each change of its state is reported once, however often it is seen, and
// nothing after its end. Pure.
class PodEvents {
 public:
  // `adopted`: its start was already reported.
  PodEvents(std::string name, elastic::Role role, bool adopted);

  std::vector<elastic::FleetEvent> OnState(const PodState& state);
  // It no longer exists: an end, if none was seen.
  std::vector<elastic::FleetEvent> OnGone();
  // Its node does not answer: lost, whether or not it ends.
  std::vector<elastic::FleetEvent> OnNodeLost();
  // It could not be created, or not yet, and why.
  std::vector<elastic::FleetEvent> OnRefused(const std::string& why);
  std::vector<elastic::FleetEvent> OnWaiting(const std::string& why, bool placed = false);
  // An adopted one is what somebody wanted to launch: the start and the leaving of which only its
  // earlier owner knew.
  std::vector<elastic::FleetEvent> OnLaunched();
  // It is being stopped on request: that it leaves is not reported.
  void OnStopped() { leaving_ = true; }

  bool ended() const { return ended_; }

 private:
  elastic::FleetEvent Event(elastic::FleetEvent::Kind kind) const;

  const std::string name_;
  const elastic::Role role_;
  bool started_, leaving_ = false, ended_ = false;
  bool start_reported_ = false;  // here
  std::string waiting_for_;
};

}  // namespace sluice::k8s
