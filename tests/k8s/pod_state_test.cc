// Maps the API server's state of a pod to a fleet's events, as a table.
#include "k8s/pod_state.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace sluice::k8s {
namespace {

using elastic::ExitClass;
using elastic::FleetEvent;
using elastic::Role;

std::string Pod(std::string_view status, std::string_view metadata = "",
                std::string_view spec = R"("nodeName":"n")") {
  return fmt::format(R"({{"metadata":{{"name":"w"{}}},"spec":{{{}}},"status":{{{}}}}})", metadata,
                     spec, status);
}

// Our container's state, next to a running sidecar.
std::string Ours(std::string_view state, std::string_view phase = "Running") {
  return fmt::format(
      R"("phase":"{}","containerStatuses":[{{"name":"istio","state":{{"running":{{}}}}}},)"
      R"({{"name":"sluice","state":{{{}}}}}])",
      phase, state);
}

std::string_view Name(ExitClass exit_class) {
  switch (exit_class) {
    case ExitClass::kOk:
      return "ok";
    case ExitClass::kPreempted:
      return "preempted";
    case ExitClass::kOutOfMemory:
      return "out of memory";
    case ExitClass::kKilledForMemory:
      return "killed for memory";
    case ExitClass::kApplication:
      return "application";
    case ExitClass::kConfiguration:
      return "configuration";
    case ExitClass::kHardware:
      return "hardware";
  }
  return "?";
}

std::string Meaning(const std::string& pod) {
  const Result<PodState> read = ReadPodState(pod);
  if (!read.ok()) {
    return read.status().message();
  }
  std::string text = read->leaving ? "leaving, " : "";
  switch (read->phase) {
    case PodState::Phase::kWaiting:
      return text + "waits for " + read->waiting_for;
    case PodState::Phase::kRunning:
      return text + "runs";
    case PodState::Phase::kEnded:
      break;
  }
  return text + fmt::format("{} {}: {}", Name(read->exit_class), read->exit_code, read->last_words);
}

struct Reading {
  std::string pod;
  std::string meaning;
};

TEST(PodState, WaitsForAReason) {
  const std::vector<Reading> cases = {
      {Pod(R"("phase":"Pending")", "", ""), "waits for the scheduler"},
      {Pod(R"("phase":"Pending")"), "waits for its node"},
      {Pod(R"("phase":"Pending","conditions":[{"type":"PodScheduled","status":"False",)"
           R"("reason":"Unschedulable","message":"0/3 nodes are available: 3 Insufficient cpu."}])",
           "", ""),
       "waits for Unschedulable: 0/3 nodes are available: 3 Insufficient cpu."},
      {Pod(R"("phase":"Pending","conditions":[{"type":"PodScheduled","status":"False",)"
           R"("reason":"SchedulingGated","message":"Scheduling is blocked due to non-empty scheduling gates"}])",
           "", ""),
       "waits for SchedulingGated: Scheduling is blocked due to non-empty scheduling gates"},
      {Pod(Ours(R"("waiting":{"reason":"ContainerCreating"})", "Pending")), "waits for its node"},
      {Pod(Ours(R"("waiting":{"reason":"ErrImagePull","message":"dial tcp: i/o timeout"})",
                "Pending")),
       "waits for ErrImagePull: dial tcp: i/o timeout"},
      {Pod(Ours(R"("waiting":{"reason":"ImagePullBackOff","message":"Back-off"})", "Pending")),
       "waits for ImagePullBackOff: Back-off"},
      // We do not wait for a sidecar that has no image.
      {Pod(R"("phase":"Pending","containerStatuses":[{"name":"log","state":{"waiting":{"reason":)"
           R"("ImagePullBackOff"}}},{"name":"sluice","state":{"waiting":{"reason":"PodInitializing"}}}])"),
       "waits for its node"},
  };
  for (const Reading& each : cases) {
    EXPECT_EQ(Meaning(each.pod), each.meaning) << each.pod;
  }
}

TEST(PodState, RunsWhenOurContainerDoes) {
  const std::vector<Reading> cases = {
      {Pod(Ours(R"("running":{"startedAt":"2026-01-01T00:00:00Z"})")), "runs"},
      // Mesh sidecars start late or not at all.
      {Pod(R"("phase":"Pending","containerStatuses":[{"name":"sluice","state":{"running":{}}}])"),
       "runs"},
      {Pod(Ours(R"("running":{})"), R"(,"deletionTimestamp":"2026-01-01T00:00:00Z")"),
       "leaving, runs"},
      // The kubelet is silent, the node may be dead: it is not known whether anything has ended.
      {Pod(Ours(R"("running":{})", "Unknown")), "runs"},
  };
  for (const Reading& each : cases) {
    EXPECT_EQ(Meaning(each.pod), each.meaning) << each.pod;
  }
}

TEST(PodState, EndsWithOurContainerAndSaysHow) {
  const auto terminated = [](int code, const std::string& reason, const std::string& message = "") {
    return fmt::format(R"("terminated":{{"exitCode":{},"reason":"{}","message":"{}"}})", code,
                       reason, message);
  };
  const std::string leaving = R"(,"deletionTimestamp":"2026-01-01T00:00:00Z")";
  const std::vector<Reading> cases = {
      {Pod(Ours(terminated(0, "Completed"))), "ok 0: "},
      {Pod(Ours(terminated(1, "Error", "no such table"))), "application 1: no such table"},
      {Pod(Ours(terminated(139, "Error"))), "application 139: "},
      {Pod(Ours(terminated(137, "Error"))), "preempted 137: "},
      {Pod(Ours(terminated(143, "Error")), leaving), "leaving, preempted 143: the pod was deleted"},
      {Pod(Ours(terminated(137, "Error", "its last line")), leaving),
       "leaving, preempted 137: the pod was deleted: its last line"},
      {Pod(Ours(terminated(0, "Completed")), leaving), "leaving, preempted 0: the pod was deleted"},
      {Pod(Ours(terminated(0, "Completed")) +
           R"(,"reason":"Terminated","message":"node shutdown")"),
       "preempted 0: Terminated: node shutdown"},
      {Pod(Ours(terminated(137, "OOMKilled"))), "out of memory 137: OOMKilled"},
      {Pod(Ours(terminated(247, "Error"))), "out of memory 247: "},
      {Pod(Ours(terminated(127, "Error"))), "configuration 127: "},
      {Pod(Ours(terminated(128, "ContainerCannotRun", "exec: sluice: not found"))),
       "configuration 128: exec: sluice: not found"},
      {Pod(Ours(terminated(135, "Error"))), "hardware 135: "},
      // An end caused by its node is not the pod's own fault.
      {Pod(Ours(terminated(1, "Error")) +
           R"(,"conditions":[{"type":"DisruptionTarget","status":"True"}])"),
       "preempted 1: "},
      {Pod(Ours(terminated(255, "ContainerStatusUnknown", "The container could not be located"))),
       "preempted 255: The container could not be located"},
      {Pod(Ours(terminated(99999, "Error"))), "application 255: "},
  };
  for (const Reading& each : cases) {
    EXPECT_EQ(Meaning(each.pod), each.meaning) << each.pod;
  }
}

TEST(PodState, EndsWithThePodWhereNobodyKnowsMore) {
  const std::vector<Reading> cases = {
      {Pod(R"("phase":"Failed","reason":"Evicted","message":"The node was low on resource: memory.")"),
       "preempted 137: Evicted: The node was low on resource: memory."},
      {Pod(R"("phase":"Failed","reason":"OutOfcpu","message":"Node didn't have enough resource: cpu")"),
       "preempted 137: OutOfcpu: Node didn't have enough resource: cpu"},
      {Pod(R"("phase":"Failed","reason":"NodeLost")"), "preempted 137: NodeLost"},
      {Pod(R"("phase":"Failed")"), "preempted 137: "},
      {Pod(R"("phase":"Failed","reason":"DeadlineExceeded","message":"Pod was active too long")"),
       "configuration 126: DeadlineExceeded: Pod was active too long"},
      {Pod(R"("phase":"Succeeded")"), "ok 0: "},
      {Pod(R"("phase":"Failed","initContainerStatuses":[{"name":"fetch","state":{"terminated":)"
           R"({"exitCode":2,"message":"no route"}}}])"),
       "configuration 126: its init container fetch ended with 2: no route"},
  };
  for (const Reading& each : cases) {
    EXPECT_EQ(Meaning(each.pod), each.meaning) << each.pod;
  }
}

TEST(PodState, WhatNeverStartsEndsInTheKubeletsOwnWords) {
  for (const std::string reason :
       {"InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError"}) {
    EXPECT_EQ(
        Meaning(Pod(Ours(fmt::format(R"("waiting":{{"reason":"{}","message":"Back-off"}})", reason),
                         "Pending"))),
        "configuration 126: " + reason + ": Back-off");
  }
  EXPECT_EQ(Meaning(Pod(R"("phase":"Pending","initContainerStatuses":[{"name":"i","state":)"
                        R"({"waiting":{"reason":"InvalidImageName"}}}])")),
            "configuration 126: InvalidImageName");
}

TEST(PodState, WhatIsNoPodIsRefused) {
  EXPECT_EQ(Meaning("{}"), "a pod has no spec or no status");
  EXPECT_EQ(Meaning(R"({"spec":3,"status":[1]})"), "waits for the scheduler");
  EXPECT_EQ(Meaning(R"({"spec":{},"status":{"containerStatuses":{"name":"sluice"},"phase":7}})"),
            "waits for the scheduler");
  EXPECT_EQ(Meaning("[]"), "a pod is JSON, but not an object");
}

std::string Told(const std::vector<FleetEvent>& events) {
  std::string text;
  for (const FleetEvent& event : events) {
    constexpr std::array<std::string_view, 5> kNames = {"started", "exited", "granted", "leaving",
                                                        "waiting"};
    text += kNames[static_cast<size_t>(event.kind)];
    text += event.message.empty() ? " " : "(" + event.message + ") ";
  }
  return text;
}

TEST(PodEvents, TellsEachThingOnce) {
  PodEvents story("w", Role::kWorker, false);
  const auto see = [&story](const std::string& pod) {
    return Told(story.OnState(ReadPodState(pod).value()));
  };
  const std::string running = Pod(Ours(R"("running":{})"));
  const std::string leaving =
      Pod(Ours(R"("running":{})"), R"(,"deletionTimestamp":"2026-01-01T00:00:00Z")");
  const std::string ended = Pod(Ours(R"("terminated":{"exitCode":137,"reason":"OOMKilled"})"));
  EXPECT_EQ(see(Pod(R"("phase":"Pending")")), "waiting(its node) ");
  EXPECT_EQ(see(Pod(R"("phase":"Pending")")), "");
  EXPECT_EQ(see(running), "started ");
  EXPECT_EQ(see(running), "");
  EXPECT_EQ(see(Pod(R"("phase":"Pending")")), "") << "it has started";
  EXPECT_EQ(see(leaving), "leaving ");
  EXPECT_EQ(see(leaving), "");
  EXPECT_EQ(see(ended), "exited(OOMKilled) ") << "once per death, however often it is told";
  EXPECT_EQ(see(ended), "");
  EXPECT_EQ(see(running), "") << "an old event";
  EXPECT_EQ(Told(story.OnGone()), "");
}

TEST(PodState, WhoeverEndedItIsNamedWhereTheApiServerSaysSo) {
  const std::string killed = R"("terminated":{"exitCode":143,"reason":"Error"})";
  const auto words = [](const std::string& pod) { return ReadPodState(pod).value().last_words; };
  EXPECT_EQ(words(Pod(Ours(killed))), "");
  EXPECT_EQ(words(Pod(Ours(killed), R"(,"deletionTimestamp":"2026-01-01T00:00:00Z")")),
            kPodDeleted);
  EXPECT_EQ(
      words(Pod(Ours(killed) + R"(,"conditions":[{"type":"DisruptionTarget","status":"True",)"
                               R"("reason":"PreemptionByScheduler","message":"for a service"}])")),
      "PreemptionByScheduler: for a service");
}

TEST(PodEvents, EndsInWhateverWayThePodDoes) {
  const std::string ended = Pod(Ours(R"("terminated":{"exitCode":0,"reason":"Completed"})"));
  EXPECT_EQ(Told(PodEvents("w", Role::kWorker, false).OnState(ReadPodState(ended).value())),
            "exited ")
      << "over before anybody looked";
  const std::vector<FleetEvent> gone = PodEvents("w", Role::kWorker, true).OnGone();
  EXPECT_EQ(Told(gone), "exited(the pod was deleted) ");
  EXPECT_EQ(gone[0].exit_class, ExitClass::kPreempted);
  EXPECT_EQ(gone[0].exit_code, 137);
  EXPECT_EQ(Told(PodEvents("w", Role::kWorker, true)
                     .OnState(ReadPodState(Pod(Ours(R"("running":{})"))).value())),
            "")
      << "an adopted one was known to run";
  PodEvents refused("w", Role::kWorker, false);
  EXPECT_EQ(Told(refused.OnWaiting("exceeded quota")), "waiting(exceeded quota) ");
  const std::vector<FleetEvent> end = refused.OnRefused("403 Forbidden");
  EXPECT_EQ(Told(end), "exited(403 Forbidden) ");
  EXPECT_EQ(end[0].exit_class, ExitClass::kConfiguration);
}

TEST(PodEvents, SaysWhetherWhoWaitsHasAPlace) {
  PodEvents story("w", Role::kWorker, false);
  PodState state;
  state.waiting_for = "Unschedulable: 0/1 nodes are available";
  EXPECT_FALSE(story.OnState(state).at(0).placed);
  state.node = "node-1";
  state.waiting_for = kWaitsForNode;
  EXPECT_TRUE(story.OnState(state).at(0).placed);
}

}  // namespace
}  // namespace sluice::k8s
