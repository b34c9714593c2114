#include "k8s/pod_state.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

#include "k8s/json_internal.h"

namespace sluice::k8s {
namespace {

using elastic::ExitClass;
using elastic::FleetEvent;
using rapidjson::Value;

constexpr int kKilled = 137;         // a process that disappears without an end was killed
constexpr int kCannotExecute = 126;  // a container that could not be created

// Waiting does not help with these.
constexpr std::array<std::string_view, 3> kPermanentReasons = {
    "InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError"};
// It may with these: a registry is away for a while, and the kubelet tries again.
constexpr std::array<std::string_view, 3> kImageReasons = {"ErrImagePull", "ImagePullBackOff",
                                                           "RegistryUnavailable"};

// Reasons of a failed pod that concern the node, and say nothing about the process.
constexpr std::array<std::string_view, 12> kDisplaced = {
    "Evicted",     "Preempting",   "Preempted",    "NodeLost",
    "Shutdown",    "NodeShutdown", "Terminated",   "OutOfcpu",
    "OutOfmemory", "OutOfpods",    "NodeAffinity", "UnexpectedAdmissionError"};

template <size_t count>
bool IsOneOf(std::string_view reason, const std::array<std::string_view, count>& reasons) {
  return std::find(reasons.begin(), reasons.end(), reason) != reasons.end();
}

std::string Words(std::string_view reason, std::string_view message) {
  return message.empty() ? std::string(reason) : fmt::format("{}: {}", reason, message);
}

// The status of a container by its name; nullptr: the kubelet has not reported it yet.
const Value* StatusOf(const Value& pod, std::string_view name) {
  for (const Value& each : ArrayIn(pod, {"status", "containerStatuses"})) {
    if (TextIn(each, {"name"}) == name) {
      return &each;
    }
  }
  return nullptr;
}

// A condition with that status ("True", "False").
const Value* ConditionOf(const Value& pod, std::string_view type, std::string_view status) {
  for (const Value& each : ArrayIn(pod, {"status", "conditions"})) {
    if (TextIn(each, {"type"}) == type && TextIn(each, {"status"}) == status) {
      return &each;
    }
  }
  return nullptr;
}

void End(PodState& state, int exit_code, ExitClass exit_class, std::string last_words) {
  state.phase = PodState::Phase::kEnded;
  state.exit_code = exit_code;
  state.exit_class = exit_class;
  state.last_words = std::move(last_words);
}

// The pod was evicted: by the node, the scheduler, a drain.
bool WasDisplaced(const Value& pod) {
  return IsOneOf(TextIn(pod, {"status", "reason"}), kDisplaced) ||
         ConditionOf(pod, "DisruptionTarget", "True") != nullptr;
}

// Where the API server says so; a pod of which it only says that it goes was deleted: by a user, by
// a drain, or, before Kubernetes 1.26, by the scheduler.
std::string HowDisplaced(const Value& pod) {
  if (const Value* target = ConditionOf(pod, "DisruptionTarget", "True")) {
    return Words(TextIn(*target, {"reason"}), TextIn(*target, {"message"}));
  }
  const std::string_view reason = TextIn(pod, {"status", "reason"});
  return !reason.empty() ? Words(reason, TextIn(pod, {"status", "message"}))
         : TextIn(pod, {"metadata", "deletionTimestamp"}).empty() ? ""
                                                                  : std::string(kPodDeleted);
}

void ReadTerminated(const Value& pod, const Value& terminated, PodState& state) {
  const auto exit_code =
      static_cast<int>(std::clamp<int64_t>(NumberIn(terminated, {"exitCode"}), 0, 255));
  const std::string_view reason = TextIn(terminated, {"reason"});
  std::string words(TextIn(terminated, {"message"}));
  if (words.empty() && reason != "Error" && reason != "Completed") {
    words = reason;
  }
  const bool lost = reason == "ContainerStatusUnknown";  // its node was lost
  ExitClass exit_class = elastic::ClassifyExit(exit_code, reason == "OOMKilled");
  if (reason == "ContainerCannotRun" || reason == "StartError") {
    exit_class = ExitClass::kConfiguration;
  } else if ((exit_class == ExitClass::kApplication && (lost || WasDisplaced(pod))) ||
             (exit_class == ExitClass::kOk && (state.leaving || WasDisplaced(pod)))) {
    exit_class = ExitClass::kPreempted;
  }
  if (const std::string how = HowDisplaced(pod);
      exit_class == ExitClass::kPreempted && !how.empty()) {
    words = Words(how, words);
  }
  End(state, exit_code, exit_class, std::move(words));
}

// An init container failed: ours never starts.
bool ReadFailedInit(const Value& pod, PodState& state) {
  for (const Value& each : ArrayIn(pod, {"status", "initContainerStatuses"})) {
    const Value* terminated = FindIn(each, {"state", "terminated"});
    const int64_t exit_code = terminated == nullptr ? 0 : NumberIn(*terminated, {"exitCode"});
    if (exit_code != 0) {
      End(state, kCannotExecute, ExitClass::kConfiguration,
          fmt::format("its init container {} ended with {}{}", TextIn(each, {"name"}), exit_code,
                      TextIn(*terminated, {"message"}).empty()
                          ? std::string()
                          : fmt::format(": {}", TextIn(*terminated, {"message"}))));
      return true;
    }
  }
  return false;
}

// The pod is over, and nothing tells how our container ended.
void ReadFailedPod(const Value& pod, PodState& state) {
  const std::string_view reason = TextIn(pod, {"status", "reason"});
  const std::string words = Words(reason, TextIn(pod, {"status", "message"}));
  if (WasDisplaced(pod) || reason.empty()) {
    End(state, kKilled, ExitClass::kPreempted, words);
  } else {  // DeadlineExceeded, or a permanent refusal by the node's admission
    End(state, kCannotExecute, ExitClass::kConfiguration, words);
  }
}

// Why it does not run yet; an end if it never will.
void ReadWaiting(const Value& pod, const Value* container, PodState& state) {
  for (const char* const list : {"initContainerStatuses", "containerStatuses"}) {
    for (const Value& each : ArrayIn(pod, {"status", list})) {
      const std::string_view reason = TextIn(each, {"state", "waiting", "reason"});
      const bool ours = &each == container || std::string_view(list) == "initContainerStatuses";
      if (ours && IsOneOf(reason, kPermanentReasons)) {
        End(state, kCannotExecute, ExitClass::kConfiguration,
            Words(reason, TextIn(each, {"state", "waiting", "message"})));
        return;
      }
      // These two are every pod's way to its start.
      if (ours && !reason.empty() && reason != "PodInitializing" && reason != "ContainerCreating") {
        state.waiting_for = Words(reason, TextIn(each, {"state", "waiting", "message"}));
        state.lacks_image = IsOneOf(reason, kImageReasons);
        return;
      }
    }
  }
  if (const Value* unscheduled = ConditionOf(pod, "PodScheduled", "False")) {
    state.waiting_for = Words(TextIn(*unscheduled, {"reason"}), TextIn(*unscheduled, {"message"}));
  } else if (ConditionOf(pod, "PodScheduled", "True") == nullptr && state.node.empty()) {
    state.waiting_for = kWaitsForScheduler;
  } else {
    state.waiting_for = kWaitsForNode;
  }
}

}  // namespace

Result<PodState> ReadPodState(std::string_view json) {
  ASSIGN_OR_RETURN(const rapidjson::Document pod, ParseJsonObject(json, "a pod"));
  const std::string_view phase = TextIn(pod, {"status", "phase"});
  if (FindIn(pod, {"spec"}) == nullptr || FindIn(pod, {"status"}) == nullptr) {
    return InvalidArgument("a pod has no spec or no status");
  }
  PodState state;
  state.leaving = !TextIn(pod, {"metadata", "deletionTimestamp"}).empty();
  state.over = phase == "Succeeded" || phase == "Failed";
  state.node = TextIn(pod, {"spec", "nodeName"});
  state.address = TextIn(pod, {"status", "podIP"});
  state.accepted = phase == "Running" || state.over ||
                   !TextIn(pod, {"status", "startTime"}).empty() ||
                   ArrayIn(pod, {"status", "containerStatuses"}).Size() > 0;
  const Value* container = StatusOf(pod, kContainerName);
  const Value* terminated =
      container == nullptr ? nullptr : FindIn(*container, {"state", "terminated"});
  if (terminated != nullptr) {
    ReadTerminated(pod, *terminated, state);
  } else if (ReadFailedInit(pod, state)) {
  } else if (phase == "Failed") {
    ReadFailedPod(pod, state);
  } else if (phase == "Succeeded") {
    End(state, 0, ExitClass::kOk, "");
  } else if (container != nullptr && FindIn(*container, {"state", "running"}) != nullptr) {
    state.phase = PodState::Phase::kRunning;
  } else {
    ReadWaiting(pod, container, state);
  }
  return state;
}

std::string ImageMissing(const std::string& why) {
  return fmt::format(
      "its image could not be pulled for {:.0f} seconds: {} (is the image's name right, and does "
      "the registry let these nodes in? A pod template may name imagePullSecrets)",
      kImagePatienceSeconds, why);
}

PodEvents::PodEvents(std::string name, elastic::Role role, bool adopted)
    : name_(std::move(name)), role_(role), started_(adopted) {}

FleetEvent PodEvents::Event(FleetEvent::Kind kind) const {
  FleetEvent event;
  event.kind = kind;
  event.name = name_;
  event.role = role_;
  return event;
}

std::vector<FleetEvent> PodEvents::OnWaiting(const std::string& why, bool placed) {
  if (ended_ || started_ || why == waiting_for_) {
    return {};
  }
  waiting_for_ = why;
  FleetEvent event = Event(FleetEvent::Kind::kWaiting);
  event.message = why;
  event.placed = placed;
  return {std::move(event)};
}

std::vector<FleetEvent> PodEvents::OnState(const PodState& state) {
  if (ended_) {
    return {};
  }
  std::vector<FleetEvent> events;
  if (state.phase == PodState::Phase::kWaiting) {
    events = OnWaiting(state.waiting_for, !state.node.empty());
  } else if (state.phase == PodState::Phase::kRunning && !started_) {
    started_ = start_reported_ = true;
    events.push_back(Event(FleetEvent::Kind::kStarted));
  }
  if (state.leaving && !leaving_ && state.phase != PodState::Phase::kEnded) {
    leaving_ = true;
    events.push_back(Event(FleetEvent::Kind::kLeaving));
  }
  if (state.phase == PodState::Phase::kEnded) {
    ended_ = true;
    FleetEvent event = Event(FleetEvent::Kind::kExited);
    event.exit_code = state.exit_code;
    event.exit_class = state.exit_class;
    event.message = state.last_words;
    events.push_back(std::move(event));
  }
  return events;
}

std::vector<FleetEvent> PodEvents::OnGone() {
  PodState gone;
  End(gone, kKilled, ExitClass::kPreempted, std::string(kPodDeleted));
  return OnState(gone);
}

std::vector<FleetEvent> PodEvents::OnLaunched() {
  std::vector<FleetEvent> events;
  if (started_ && !std::exchange(start_reported_, true)) {
    events.push_back(Event(FleetEvent::Kind::kStarted));
  }
  if (leaving_) {  // whoever heard of it before had not launched it yet
    events.push_back(Event(FleetEvent::Kind::kLeaving));
  }
  return events;
}

std::vector<FleetEvent> PodEvents::OnNodeLost() {
  PodState lost;
  End(lost, kKilled, ExitClass::kPreempted, "its node does not answer");
  return OnState(lost);
}

std::vector<FleetEvent> PodEvents::OnRefused(const std::string& why) {
  PodState refused;
  End(refused, kCannotExecute, ExitClass::kConfiguration, why);
  return OnState(refused);
}

}  // namespace sluice::k8s
