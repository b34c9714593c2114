// Pods as a fleet, on the fake and on a real API server.
#include "k8s/pod_fleet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "k8s/api_verbs.h"
#include "k8s/secret_content.h"
#include "tests/k8s/pod_fleet_site.h"
#include "tests/support/eventually.h"

namespace sluice::k8s {
namespace {

using elastic::ExitClass;
using elastic::FleetEvent;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

class PodFleetContract : public PodFleetSite, public testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    if (GetParam() && !TestedApiServer::HasReal()) {
      GTEST_SKIP() << "needs a Kubernetes API server: SLUICE_TEST_KUBERNETES";
    }
    Use(GetParam());
    ASSERT_TRUE(StartFleet().ok());
  }

  // That of job7-worker-1, which has been made, and starts when its Secret is gone.
  void ExpectSecretIsMadeAgain() {
    server_->Bind("job7-worker-1", "node-1");
    server_->SetStatus("job7-worker-1",
                       R"({"phase":"Pending","startTime":"2026-01-01T00:00:00Z",)"
                       R"("containerStatuses":[{"name":"sluice","image":"sluice","imageID":"",)"
                       R"("ready":false,"restartCount":0,)"
                       R"("state":{"waiting":{"reason":"ContainerCreating"}}}]})");
    const Listing secrets =
        ListObjects(client(), {kSecrets, ns(), "training.sluice/job=job-uid"}, {});
    ASSERT_EQ(secrets.objects.size(), 1U);
    const Object& secret = secrets.objects[0];
    ASSERT_TRUE(DeleteAll(client(), {{kSecrets, ns(), secret.name, secret.uid, 1}}, {})[0].ok());
    for (int i = 0; Secrets() == 0 && i < 600; ++i) {
      server_->clock().Advance(std::chrono::milliseconds(100));
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    const ObjectAnswer again = GetObject(client(), kSecrets, ns(), secret.name, {});
    ASSERT_TRUE(again.ok()) << again.status.ToString();
    EXPECT_EQ(SecretContent(again.object).value(), SecretContent(secret).value());
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
  const Listing secrets =
      ListObjects(client(), {kSecrets, ns(), "training.sluice/job=job-uid"}, {});
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

// By hand, just before its kubelet mounts it.
TEST_P(PodFleetContract, ASecretThatIsDeletedWhileAPodStartsIsMadeAgain) {
  ASSERT_TRUE(fleet_->Launch(Worker(1)).ok());
  WaitForPods(1);
  ExpectSecretIsMadeAgain();
}

// Made by the gateway, or by the master before.
TEST_P(PodFleetContract, ASecretOfAnAdoptedPodIsMadeAgain) {
  ASSERT_TRUE(fleet_->Launch(Worker(1)).ok());
  WaitForPods(1);
  fleet_.reset();
  ASSERT_TRUE(StartFleet().ok());
  ASSERT_TRUE(fleet_->Launch(Worker(1)).ok());
  ExpectSecretIsMadeAgain();
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
  EXPECT_TRUE(Eventually(
      [this] { return GetObject(client(), kPods, ns(), "job7-worker-1", {}).object.leaving; }));
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
  elastic::ProcessSpec other = Worker(1);
  other.incarnation = elastic::Incarnation(5);
  EXPECT_EQ(fleet_->Launch(other).code(), Code::kAlreadyExists);
  Run("job7-worker-2");
  EXPECT_EQ(NextWord(), "+job7-worker-2") << "the other one was known to run";
  ASSERT_TRUE(fleet_->Stop("job7-worker-2", 1).ok());
  End("job7-worker-1", 137, "Error", "");
  EXPECT_EQ(NextWord(), "-job7-worker-1");
}

// Created by a gateway, or by a master that could not record it.
TEST_P(PodFleetContract, WhoIsThereAlreadyIsNotCreatedAgain) {
  ASSERT_TRUE(fleet_->Launch(Worker(1)).ok());
  ASSERT_TRUE(fleet_->Launch(Worker(2)).ok());
  WaitForPods(2);
  Run("job7-worker-1");
  EXPECT_EQ(NextWord(), "+job7-worker-1");
  const std::vector<std::string> before = Uids();
  fleet_.reset();
  events_.clear();
  taken_ = 0;
  ASSERT_TRUE(StartFleet().ok());
  ASSERT_TRUE(fleet_->Launch(Worker(1)).ok());
  EXPECT_EQ(NextWord(), "+job7-worker-1") << "whoever launches it hears that it runs";
  EXPECT_EQ(fleet_->Launch(Worker(1)).code(), Code::kAlreadyExists) << "now it is this fleet's";
  ASSERT_TRUE(fleet_->Launch(Worker(2)).ok());
  Run("job7-worker-2");
  EXPECT_EQ(NextWord(), "+job7-worker-2");
  EXPECT_EQ(Uids(), before);
  // One that is to end is not taken.
  fleet_.reset();
  events_.clear();
  taken_ = 0;
  ASSERT_TRUE(StartFleet().ok());
  ASSERT_TRUE(fleet_->Stop("job7-worker-2", 1).ok());
  EXPECT_EQ(fleet_->Launch(Worker(2)).code(), Code::kAlreadyExists);
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

}  // namespace
}  // namespace sluice::k8s
