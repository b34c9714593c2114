#include "k8s/fleet_pods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace sluice::k8s {
namespace {

using elastic::FleetEvent;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

class FleetPodsTest : public testing::Test {
 protected:
  void SetUp() override {
    spec_.role = elastic::Role::kWorker;
    spec_.name = "w-1";
    ASSERT_TRUE(pods_.Launch(identity_, spec_).ok());
  }
  std::vector<std::string> ToMake(TimePoint now) { return pods_.TakeDue(true, now).names; }
  std::vector<std::string> ToDelete(TimePoint now) { return pods_.TakeDue(false, now).names; }
  static ObjectAnswer Refusal(Fault fault) { return {fault, Unavailable("not now"), {}}; }
  ObjectAnswer Made(const std::string& uid) const {
    ObjectAnswer answer;
    answer.object.name = "w-1";
    answer.object.uid = uid;
    answer.object.labels = LabelsOf(identity_);
    return answer;
  }

  // Its node has accepted it, and cannot pull its image.
  PodState MakeWithoutImage() {
    EXPECT_THAT(ToMake(now_), ElementsAre("w-1"));
    pods_.OnCreated("w-1", made_, now_);
    PodState state;
    state.node = "node-1";
    state.accepted = state.lacks_image = true;
    state.waiting_for = "ErrImagePull: i/o timeout";
    pods_.OnState(made_.object, identity_, state, false, now_);
    return state;
  }

  const PodIdentity identity_{"job-uid"};
  const ObjectAnswer made_ = Made("uid-1");
  elastic::ProcessSpec spec_;
  int changes_ = 0;
  FleetPods pods_{"ns", 2, [this] { ++changes_; }};
  const TimePoint now_ = TimePoint(seconds(100));
};

TEST_F(FleetPodsTest, ATemporaryRefusalIsTriedAgainAfterLongerAndLongerTimes) {
  TimePoint now = now_;
  for (const int wait : {1, 2, 4, 8, 10, 10}) {
    ASSERT_THAT(ToMake(now), ElementsAre("w-1"));
    EXPECT_THAT(ToMake(now), IsEmpty()) << "a request is under way";
    pods_.OnCreated("w-1", Refusal(Fault::kQuota), now);
    now += seconds(wait);
    const FleetPods::Due early = pods_.TakeDue(true, now - milliseconds(1));
    EXPECT_THAT(early.names, IsEmpty());
    EXPECT_TRUE(early.later);
  }
  EXPECT_GT(changes_, 0);
}

TEST_F(FleetPodsTest, APodStartsFromWhenItHasItsNodeUntilItRuns) {
  ASSERT_THAT(ToMake(now_), ElementsAre("w-1"));
  const ObjectAnswer made = Made("uid-1");
  pods_.OnCreated("w-1", made, now_);
  PodState state;
  pods_.OnState(made.object, identity_, state, false, now_);
  EXPECT_FALSE(pods_.has_starting());
  state.node = "node-1";
  pods_.OnState(made.object, identity_, state, false, now_);
  EXPECT_TRUE(pods_.has_starting());
  state.phase = PodState::Phase::kRunning;
  pods_.OnState(made.object, identity_, state, false, now_);
  EXPECT_FALSE(pods_.has_starting());
}

TEST_F(FleetPodsTest, AnImageIsWaitedForForFiveMinutes) {
  PodState between = MakeWithoutImage();
  between.lacks_image = false;
  between.waiting_for = kWaitsForNode;
  pods_.OnState(made_.object, identity_, between, false, now_ + seconds(100));
  EXPECT_TRUE(pods_.LookAtNodes(now_ + seconds(299)));
  EXPECT_EQ(pods_.TakeEvents().back().kind, FleetEvent::Kind::kWaiting);
  pods_.LookAtNodes(now_ + seconds(301));
  const auto events = pods_.TakeEvents();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].exit_class, elastic::ExitClass::kConfiguration);
  EXPECT_THAT(events[0].message, testing::HasSubstr("300 seconds: ErrImagePull: i/o timeout"));
  EXPECT_THAT(ToDelete(now_ + seconds(301)), ElementsAre("w-1"));
}

TEST_F(FleetPodsTest, AnImageThatComesInTheEndIsNoError) {
  PodState state = MakeWithoutImage();
  state.lacks_image = false;
  state.phase = PodState::Phase::kRunning;
  pods_.OnState(made_.object, identity_, state, false, now_ + seconds(200));
  pods_.LookAtNodes(now_ + seconds(400));
  EXPECT_EQ(pods_.TakeEvents().back().kind, FleetEvent::Kind::kStarted);
}

TEST_F(FleetPodsTest, WhatIsRefusedForGoodEnds) {
  ASSERT_THAT(ToMake(now_), ElementsAre("w-1"));
  pods_.OnCreated("w-1", Refusal(Fault::kForbidden), now_);
  const auto events = pods_.TakeEvents();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].kind, FleetEvent::Kind::kExited);
  EXPECT_FALSE(pods_.has_events());
  EXPECT_THAT(pods_.Running(), IsEmpty());
}

TEST_F(FleetPodsTest, WhatIsStoppedBeforeItsCreationIsAnsweredIsLookedUpThenDeleted) {
  ASSERT_THAT(ToMake(now_), ElementsAre("w-1"));
  ASSERT_TRUE(pods_.Stop("w-1", 0.5, now_).ok());
  EXPECT_THAT(ToDelete(now_), IsEmpty()) << "not while it is being created";
  pods_.OnCreated("w-1", Refusal(Fault::kUnreachable), now_);
  ASSERT_THAT(ToDelete(now_), ElementsAre("w-1"));
  ASSERT_TRUE(pods_.WithoutUid("w-1").has_value());
  pods_.OnLookedUp("w-1", identity_, Made("uid-1"), now_);
  const std::vector<Deletion> deletions = pods_.TakeDeletions({"w-1"});
  ASSERT_EQ(deletions.size(), 1U);
  EXPECT_EQ(deletions[0].uid, "uid-1");
  EXPECT_EQ(deletions[0].grace_seconds, 1);
  EXPECT_TRUE(pods_.AllDeletionsSent());
  pods_.OnDeletionFailed(deletions[0], now_);
  EXPECT_FALSE(pods_.AllDeletionsSent());
  EXPECT_THAT(ToDelete(now_), IsEmpty());
  EXPECT_THAT(ToDelete(now_ + seconds(1)), ElementsAre("w-1"));
}

TEST_F(FleetPodsTest, AnothersPodOfThatNameIsLeftAlone) {
  ASSERT_THAT(ToMake(now_), ElementsAre("w-1"));
  ASSERT_TRUE(pods_.Stop("w-1", 1, now_).ok());
  pods_.OnCreated("w-1", Refusal(Fault::kAlreadyExists), now_);
  ASSERT_THAT(ToDelete(now_), ElementsAre("w-1"));
  ObjectAnswer theirs = Made("their-uid");
  theirs.object.labels = {{"theirs", "1"}};
  pods_.OnLookedUp("w-1", identity_, theirs, now_);
  EXPECT_THAT(pods_.TakeDeletions({"w-1"}), IsEmpty());
  EXPECT_EQ(pods_.TakeEvents().back().kind, FleetEvent::Kind::kExited);
}

TEST_F(FleetPodsTest, APodThatHasEndedGivesItsNameToTheNext) {
  ASSERT_THAT(ToMake(now_), ElementsAre("w-1"));
  pods_.OnCreated("w-1", Made("uid-1"), now_);
  EXPECT_EQ(pods_.Launch(identity_, spec_).code(), Code::kAlreadyExists);
  PodState ended;
  ended.phase = PodState::Phase::kEnded;
  pods_.OnState(Made("uid-1").object, identity_, ended, false, now_);
  ASSERT_TRUE(pods_.Launch(identity_, spec_).ok());
  ASSERT_TRUE(pods_.has_left_over());
  EXPECT_EQ(pods_.TakeDeletions({})[0].uid, "uid-1");
  pods_.OnState(Made("uid-1").object, identity_, ended, true, now_);
  EXPECT_EQ(pods_.Running().size(), 1U) << "the earlier one's disappearance";
}

}  // namespace
}  // namespace sluice::k8s
