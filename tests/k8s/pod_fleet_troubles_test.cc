// A fleet of pods where the API server fails, refuses or says nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <string>
#include <thread>

#include "k8s/api_verbs.h"
#include "tests/k8s/pod_fleet_site.h"
#include "tests/support/eventually.h"

namespace sluice::k8s {
namespace {

using elastic::ExitClass;
using elastic::FleetEvent;
using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::StartsWith;
using Trouble = FakeApiServer::Trouble;

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
  EXPECT_TRUE(Eventually(
      [this] { return GetObject(client(), kPods, ns(), "job7-worker-1", {}).object.leaving; }));
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

// Its predecessor has failed by itself and stays for its logs; the deletion of that one comes late.
TEST_F(PodFleetTroubles, ANameIsNotGivenToAPodThatHasEnded) {
  ASSERT_TRUE(fleet_->Launch(Worker(1)).ok());
  WaitForPods(1);
  Run("job7-worker-1");
  EXPECT_EQ(NextWord(), "+job7-worker-1");
  End("job7-worker-1", 1, "Error", "no such column");
  EXPECT_EQ(NextWord(), "-job7-worker-1");
  const std::string before = GetObject(client(), kPods, ns(), "job7-worker-1", {}).object.uid;
  fake().Make(Trouble::kForbidden, "delete", "pods", 2);
  ASSERT_TRUE(fleet_->Launch(Worker(1)).ok());
  std::string uid = before;
  for (int i = 0; (uid == before || uid.empty()) && i < 600; ++i) {
    server_->clock().Advance(milliseconds(100));
    std::this_thread::sleep_for(milliseconds(2));
    uid = GetObject(client(), kPods, ns(), "job7-worker-1", {}).object.uid;
  }
  ASSERT_NE(uid, before);
  Run("job7-worker-1");
  EXPECT_EQ(NextWord(), "+job7-worker-1");
}

// The answer to its creation is late, as where a job is suspended while the API server is slow.
TEST_F(PodFleetTroubles, WhatIsBeingCreatedIsDeletedBeforeTheFleetGoes) {
  fake().Make(Trouble::kKeepAnswer, "create", "pods");
  ASSERT_TRUE(fleet_->Launch(Worker(1)).ok());
  WaitForPods(1);
  ASSERT_TRUE(fleet_->Stop("job7-worker-1", 1).ok());
  const auto begin = std::chrono::steady_clock::now();
  fleet_.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(4));
  EXPECT_THAT(Pods(), IsEmpty());
}

}  // namespace
}  // namespace sluice::k8s
