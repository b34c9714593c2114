// Pods as a fleet, on the fake and on a real API server; the test plays the scheduler and the
// kubelets.
#include "k8s/pod_fleet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "k8s/api_verbs.h"
#include "tests/k8s/tested_api_server.h"

namespace sluice::k8s {
namespace {

using elastic::ExitClass;
using elastic::FleetEvent;
using elastic::Role;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;
using Trouble = FakeApiServer::Trouble;

class PodFleetSite : public testing::Test {
 protected:
  void Use(bool real) { server_ = std::make_unique<TestedApiServer>(real); }
  ApiClient& client() { return server_->client(); }
  const std::string& ns() { return server_->namespace_name(); }

  Status StartFleet() {
    PodShape shape;
    shape.namespace_name = ns();
    shape.image = "sluice";
    auto fleet = PodFleet::Start(client(), shape, "job-uid", {});
    RETURN_IF_ERROR(fleet.status());
    fleet_ = *std::move(fleet);
    fleet_->Watch([this](const FleetEvent& event) {
      const std::lock_guard lock(mutex_);
      events_.push_back(event);
    });
    return OkStatus();
  }
  elastic::ProcessSpec Worker(int number) {
    elastic::ProcessSpec spec;
    spec.role = Role::kWorker;
    spec.name = "job7-worker-" + std::to_string(number);
    spec.config = "plan";
    spec.incarnation = elastic::Incarnation(static_cast<uint64_t>(number));
    spec.resources = {0.1, int64_t{64} << 20};
    return spec;
  }
  // "+worker-1" started, "-worker-1" ended, "<" leaving, "?" waiting: the next event, skipping
  // those about waiting, which a real server reports in more steps.
  FleetEvent Next(bool waiting = false) {
    while (true) {
      {
        const std::lock_guard lock(mutex_);
        while (taken_ < events_.size()) {
          const FleetEvent& event = events_[taken_++];
          if (waiting == (event.kind == FleetEvent::Kind::kWaiting)) {
            return event;
          }
        }
      }
      server_->clock().Advance(milliseconds(20));
      std::this_thread::sleep_for(milliseconds(1));
    }
  }
  std::string NextWord() {
    const FleetEvent event = Next();
    return std::string(1, "+-g<?"[static_cast<size_t>(event.kind)]) + event.name;
  }
  std::vector<std::string> Pods() {
    std::vector<std::string> names;
    for (const Object& pod : ListObjects(client(), {kPods, ns(), ""}, {}).objects) {
      names.push_back(pod.name);
    }
    return names;
  }
  size_t Secrets() {
    return ListObjects(client(), {kSecrets, ns(), "training.sluice/job=job-uid"}, {})
        .objects.size();
  }
  void WaitForPods(size_t count) {
    while (Pods().size() != count) {
      server_->clock().Advance(milliseconds(100));
      std::this_thread::sleep_for(milliseconds(2));
    }
  }
  // As its kubelet would.
  void Run(const std::string& name) {
    server_->Bind(name, "node-1");
    server_->SetStatus(name, R"({"phase":"Running","containerStatuses":[{"name":"sluice",)"
                             R"("image":"sluice","imageID":"","ready":true,"restartCount":0,)"
                             R"("state":{"running":{"startedAt":"2026-01-01T00:00:00Z"}}}]})");
  }
  void End(const std::string& name, int code, const std::string& reason,
           const std::string& message) {
    const std::string phase = code == 0 ? "Succeeded" : "Failed";
    server_->SetStatus(
        name,
        R"({"phase":")" + phase +
            R"(","containerStatuses":[{"name":"sluice","image":"sluice","imageID":"",)"
            R"("ready":false,"restartCount":0,"state":{"running":null,"terminated":{"exitCode":)" +
            std::to_string(code) + R"(,"reason":")" + reason + R"(","message":")" + message +
            R"("}}}]})");
  }

  std::unique_ptr<TestedApiServer> server_;
  std::mutex mutex_;
  std::vector<FleetEvent> events_;
  size_t taken_ = 0;
  std::unique_ptr<PodFleet> fleet_;  // ends first
};

class PodFleetContract : public PodFleetSite, public testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    if (GetParam() && !TestedApiServer::HasReal()) {
      GTEST_SKIP() << "needs a Kubernetes API server: SLUICE_TEST_KUBERNETES";
    }
    Use(GetParam());
    ASSERT_TRUE(StartFleet().ok());
  }
};

TEST_P(PodFleetContract, ALaunchedProcessIsAPodWithItsSecret) {
  ASSERT_TRUE(fleet_->Launch(Worker(1)).ok());
  EXPECT_EQ(fleet_->Launch(Worker(1)).code(), Code::kAlreadyExists);
  WaitForPods(1);
  EXPECT_EQ(Secrets(), 1U);
  EXPECT_THAT(Next(true).message, StartsWith("the scheduler"));
  Run("job7-worker-1");
  EXPECT_EQ(NextWord(), "+job7-worker-1");
  End("job7-worker-1", 137, "OOMKilled", "out of it");
  const FleetEvent end = Next();
  EXPECT_EQ(end.kind, FleetEvent::Kind::kExited);
  EXPECT_EQ(end.exit_code, 137);
  EXPECT_EQ(end.exit_class, ExitClass::kOutOfMemory);
  EXPECT_EQ(end.message, "out of it");
  WaitForPods(0);
  EXPECT_EQ(fleet_->Stop("job7-worker-1", 1).code(), Code::kNotFound);
}

TEST_P(PodFleetContract, ProcessesOfOneConfigurationMountOneSecret) {
  ASSERT_TRUE(fleet_->Launch(Worker(1)).ok());
  ASSERT_TRUE(fleet_->Launch(Worker(2)).ok());
  WaitForPods(2);
  EXPECT_EQ(Secrets(), 1U);
  elastic::ProcessSpec other = Worker(3);
  other.config = "another plan";
  ASSERT_TRUE(fleet_->Launch(other).ok());
  WaitForPods(3);
  EXPECT_EQ(Secrets(), 2U);
  const Listing secrets = ListObjects(client(), {kSecrets, ns(), "training.sluice/job=job-uid"}, {});
  // Deleted by hand: created again for the pods that come later than a few seconds.
  for (const Object& secret : secrets.objects) {
    ASSERT_TRUE(DeleteAll(client(), {{kSecrets, ns(), secret.name, secret.uid, 1}}, {})[0].ok());
  }
  server_->clock().Advance(seconds(11));
  ASSERT_TRUE(fleet_->Launch(Worker(4)).ok());
  WaitForPods(4);
  EXPECT_EQ(Secrets(), 1U);
  // A later master's fleet adopts it.
  fleet_.reset();
  ASSERT_TRUE(StartFleet().ok());
  ASSERT_TRUE(fleet_->Launch(Worker(5)).ok());
  WaitForPods(5);
  EXPECT_EQ(Secrets(), 1U);
}

// No job's objects are left behind where its owner stays, as that of a suspended one does.
TEST_P(PodFleetContract, WhatHasEndedIsDeletedBeforeTheFleetGoes) {
  for (int round = 0; round < 20; ++round) {
    ASSERT_TRUE(fleet_->Launch(Worker(1)).ok());
    WaitForPods(1);
    Run("job7-worker-1");
    EXPECT_EQ(NextWord(), "+job7-worker-1");
    End("job7-worker-1", 0, "Completed", "");
    EXPECT_EQ(NextWord(), "-job7-worker-1");
    fleet_.reset();
    ASSERT_THAT(Pods(), IsEmpty()) << round;
    taken_ = 0;
    events_.clear();
    ASSERT_TRUE(StartFleet().ok());
  }
}

TEST_P(PodFleetContract, WhatFailsByItselfStaysForItsLogs) {
  ASSERT_TRUE(fleet_->Launch(Worker(1)).ok());
  ASSERT_TRUE(fleet_->Launch(Worker(2)).ok());
  WaitForPods(2);
  Run("job7-worker-1");
  EXPECT_EQ(NextWord(), "+job7-worker-1");
  End("job7-worker-1", 1, "Error", "no such column");
  EXPECT_EQ(Next().message, "no such column");
  Run("job7-worker-2");
  EXPECT_EQ(NextWord(), "+job7-worker-2");
  End("job7-worker-2", 0, "Completed", "");
  EXPECT_EQ(Next().exit_class, ExitClass::kOk);
  WaitForPods(1);
  EXPECT_EQ(Pods()[0], "job7-worker-1");
}

TEST_P(PodFleetContract, AStopIsNoLeavingAndEndsWithItsContainer) {
  ASSERT_TRUE(fleet_->Launch(Worker(1)).ok());
  WaitForPods(1);
  Run("job7-worker-1");
  EXPECT_EQ(NextWord(), "+job7-worker-1");
  ASSERT_TRUE(fleet_->Stop("job7-worker-1", 0.8).ok());
  while (!GetObject(client(), kPods, ns(), "job7-worker-1", {}).object.leaving) {
    std::this_thread::sleep_for(milliseconds(2));
  }
  End("job7-worker-1", 143, "Error", "");
  const FleetEvent end = Next();
  EXPECT_EQ(end.kind, FleetEvent::Kind::kExited) << "long before the API forgets it";
  EXPECT_EQ(end.exit_class, ExitClass::kPreempted);
  server_->Forget("job7-worker-1");
  // Its name can be reused.
  ASSERT_TRUE(fleet_->Launch(Worker(1)).ok());
  WaitForPods(1);
  Run("job7-worker-1");
  EXPECT_EQ(NextWord(), "+job7-worker-1");
}

TEST_P(PodFleetContract, WhatSomebodyElseDeletesLeavesFirst) {
  ASSERT_TRUE(fleet_->Launch(Worker(1)).ok());
  WaitForPods(1);
  Run("job7-worker-1");
  EXPECT_EQ(NextWord(), "+job7-worker-1");
  ASSERT_TRUE(DeleteAll(client(), {{kPods, ns(), "job7-worker-1", "", 30}}, {})[0].ok());
  EXPECT_EQ(NextWord(), "<job7-worker-1");
  server_->Forget("job7-worker-1");
  const FleetEvent end = Next();
  EXPECT_EQ(end.kind, FleetEvent::Kind::kExited);
  EXPECT_EQ(end.exit_class, ExitClass::kPreempted);
}

TEST_P(PodFleetContract, AnotherMasterFindsWhoLivesAndNobodyIsStopped) {
  ASSERT_TRUE(fleet_->Launch(Worker(1)).ok());
  ASSERT_TRUE(fleet_->Launch(Worker(2)).ok());
  WaitForPods(2);
  Run("job7-worker-1");
  EXPECT_EQ(NextWord(), "+job7-worker-1");
  fleet_.reset();
  events_.clear();
  taken_ = 0;
  EXPECT_EQ(Pods().size(), 2U);
  ASSERT_TRUE(StartFleet().ok());
  ASSERT_EQ(fleet_->adopted().size(), 2U);
  EXPECT_EQ(fleet_->adopted()[0].name, "job7-worker-1");
  EXPECT_EQ(fleet_->adopted()[0].identity.incarnation, elastic::Incarnation(1));
  EXPECT_EQ(fleet_->Launch(Worker(1)).code(), Code::kAlreadyExists);
  Run("job7-worker-2");
  EXPECT_EQ(NextWord(), "+job7-worker-2") << "the other one was known to run";
  ASSERT_TRUE(fleet_->Stop("job7-worker-2", 1).ok());
  End("job7-worker-1", 137, "Error", "");
  EXPECT_EQ(NextWord(), "-job7-worker-1");
}

// The master asks for the next one at each end: all are requested though nothing is said of the
// first.
TEST_P(PodFleetContract, ThirtyOfThirtyTwoThatAreDeletedAreReplacedTogether) {
  constexpr int kAll = 32, kLost = 30;
  for (int i = 1; i <= kAll; ++i) {
    ASSERT_TRUE(fleet_->Launch(Worker(i)).ok());
  }
  WaitForPods(kAll);
  for (int i = 1; i <= kAll; ++i) {
    Run(Worker(i).name);
    EXPECT_EQ(Next().kind, FleetEvent::Kind::kStarted);
  }
  std::vector<Deletion> deletions;
  for (int i = 1; i <= kLost; ++i) {
    deletions.push_back({kPods, ns(), Worker(i).name, "", 30});
  }
  for (const ApiAnswer& answer : DeleteAll(client(), deletions, {})) {
    ASSERT_TRUE(answer.ok());
  }
  for (int i = 1; i <= kLost; ++i) {
    EXPECT_EQ(Next().kind, FleetEvent::Kind::kLeaving);
    ASSERT_TRUE(fleet_->Launch(Worker(kAll + i)).ok());
  }
  WaitForPods(kAll + kLost);  // those that leave have half a minute
  for (int i = 1; i <= kLost; ++i) {
    server_->Forget(Worker(i).name);
    EXPECT_EQ(Next().kind, FleetEvent::Kind::kExited);
  }
  WaitForPods(kAll);
}

// As after a power cut: the API server says for a while that all is well there.
TEST_P(PodFleetContract, ANodeThatDoesNotAnswerIsAvoidedAndWaitedForInVainOnce) {
  ASSERT_TRUE(fleet_->Launch(Worker(1)).ok());
  WaitForPods(1);
  Run("job7-worker-1");
  EXPECT_EQ(NextWord(), "+job7-worker-1");
  ASSERT_TRUE(fleet_->Stop("job7-worker-1", 1).ok());
  for (int i = 0; i < 60; ++i) {  // nothing is said of its end
    server_->clock().Advance(milliseconds(100));
    std::this_thread::sleep_for(milliseconds(5));
  }
  // Those that it launches before it has looked at the clock may still go there.
  constexpr int kMost = 30;
  int last = 1;
  std::string pod;
  do {
    ASSERT_TRUE(fleet_->Launch(Worker(++last)).ok());
    WaitForPods(last);
    pod = GetObject(client(), kPods, ns(), Worker(last).name, {}).object.json;
  } while (pod.find("NotIn") == std::string::npos && last < kMost);
  EXPECT_THAT(pod, HasSubstr(R"("operator":"NotIn","values":["node-1"])"));
  server_->Bind(Worker(last).name, "node-1");
  const FleetEvent lost = Next();
  EXPECT_EQ(lost.kind, FleetEvent::Kind::kExited);
  EXPECT_EQ(lost.name, Worker(last).name);
  EXPECT_EQ(lost.exit_class, ExitClass::kPreempted);
  EXPECT_EQ(lost.message, "its node does not answer");
}

INSTANTIATE_TEST_SUITE_P(, PodFleetContract, testing::Bool(),
                         [](const auto& suite) { return suite.param ? "Real" : "Fake"; });

class PodFleetTroubles : public PodFleetSite {
 protected:
  void SetUp() override {
    Use(false);
    ASSERT_TRUE(StartFleet().ok());
  }
  FakeApiServer& fake() { return server_->fake(); }
};

TEST_F(PodFleetTroubles, ThirtyGoOutTogetherThoughTheServerStumbles) {
  fake().Make(Trouble::kServerError, "create", "secrets", 2);
  fake().Make(Trouble::kLoseAnswer, "create", "pods", 2);
  fake().Make(Trouble::kTooManyRequests, "create", "pods");
  std::set<std::string> names;
  for (int i = 1; i <= 30; ++i) {
    ASSERT_TRUE(fleet_->Launch(Worker(i)).ok());
    names.insert(Worker(i).name);
  }
  WaitForPods(30);
  for (int i = 1; i <= 30; ++i) {
    Run(Worker(i).name);
  }
  while (!names.empty()) {
    const FleetEvent event = Next();
    EXPECT_EQ(event.kind, FleetEvent::Kind::kStarted);
    EXPECT_EQ(names.erase(event.name), 1U) << "told once";
  }
}

TEST_F(PodFleetTroubles, AQuotaMakesItWaitAndGoOnLater) {
  server_->Do(Verb::kCreate, {"", "v1", "resourcequotas"}, "", "",
              R"({"metadata":{"name":"q"},"status":{"hard":{"pods":"0"}}})");
  ASSERT_TRUE(fleet_->Launch(Worker(1)).ok());
  EXPECT_THAT(Next(true).message, HasSubstr("exceeded quota: q"));
  server_->Do(Verb::kDelete, {"", "v1", "resourcequotas"}, "q", "", "");
  WaitForPods(1);
  Run("job7-worker-1");
  EXPECT_EQ(NextWord(), "+job7-worker-1");
}

TEST_F(PodFleetTroubles, WhatIsRefusedIsAnEndWithTheServersWords) {
  fake().Make(Trouble::kForbidden, "create", "pods");
  ASSERT_TRUE(fleet_->Launch(Worker(1)).ok());
  const FleetEvent end = Next();
  EXPECT_EQ(end.kind, FleetEvent::Kind::kExited);
  EXPECT_EQ(end.exit_class, ExitClass::kConfiguration);
  EXPECT_THAT(end.message, StartsWith("job7-worker-1: cannot create pods in namespace"));
  elastic::ProcessSpec large = Worker(2);
  large.config = std::string(2 << 20, 'x');
  EXPECT_EQ(fleet_->Launch(large).code(), Code::kResourceExhausted);
}

TEST_F(PodFleetTroubles, AnotherPodOfThatNameIsLeftAlone) {
  server_->Do(Verb::kCreate, kPods, "", "", PodJson("job7-worker-1", R"({"theirs":"1"})"));
  ASSERT_TRUE(fleet_->Launch(Worker(1)).ok());
  EXPECT_THAT(Next(true).message, HasSubstr("already exists"));
  ASSERT_TRUE(fleet_->Stop("job7-worker-1", 1).ok());
  EXPECT_EQ(NextWord(), "-job7-worker-1");
  EXPECT_EQ(Pods().size(), 1U);
}

TEST_F(PodFleetTroubles, AMissingImageIsAnEndInTheKubeletsWordsAndThePodGoes) {
  ASSERT_TRUE(fleet_->Launch(Worker(1)).ok());
  WaitForPods(1);
  server_->Bind("job7-worker-1", "node-1");
  server_->SetStatus("job7-worker-1",
                     R"({"containerStatuses":[{"name":"sluice","state":{"waiting":{"reason":)"
                     R"("ErrImageNeverPull","message":"sluice is not present"}}}]})");
  const FleetEvent end = Next();
  EXPECT_EQ(end.exit_class, ExitClass::kConfiguration);
  EXPECT_EQ(end.message, "ErrImageNeverPull: sluice is not present");
  while (!GetObject(client(), kPods, ns(), "job7-worker-1", {}).object.leaving) {
    std::this_thread::sleep_for(milliseconds(2));
  }
}

TEST_F(PodFleetTroubles, ADeletionThatFailsIsTriedAgain) {
  ASSERT_TRUE(fleet_->Launch(Worker(1)).ok());
  WaitForPods(1);
  fake().Make(Trouble::kForbidden, "delete", "pods", 2);
  ASSERT_TRUE(fleet_->Stop("job7-worker-1", 1).ok());
  EXPECT_EQ(NextWord(), "-job7-worker-1");
  EXPECT_EQ(fake().Asked("delete", "pods"), 3);
}

TEST_F(PodFleetTroubles, EndsWhileTheServerSaysNothing) {
  fake().Make(Trouble::kSayNothing, "create", "secrets");
  ASSERT_TRUE(fleet_->Launch(Worker(1)).ok());
  fake().WaitUntilAsked("create", "secrets", 1);
  fleet_.reset();
}

}  // namespace
}  // namespace sluice::k8s
