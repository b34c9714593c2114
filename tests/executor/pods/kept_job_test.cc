#include "executor/pods/kept_job.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>

#include "executor/pods/pod_job.h"

namespace sluice::executor {
namespace {

using Need = KeptJob::Need;
using Phase = k8s::PodState::Phase;

class KeptJobTest : public ::testing::Test {
 protected:
  KeptJobTest() { job_.Describe({"uid", "job7-uid", "job7-uid-master", "service", "sluice", 7}); }

  static TimePoint At(double after) {
    return std::chrono::duration_cast<TimePoint>(std::chrono::duration<double>(after));
  }
  static k8s::PodState Running() {
    k8s::PodState state;
    state.phase = Phase::kRunning;
    return state;
  }
  static k8s::PodState Ended(int exit_code) {
    return Ended(exit_code,
                 exit_code == 0 ? elastic::ExitClass::kOk : elastic::ExitClass::kPreempted);
  }
  static k8s::PodState Ended(int exit_code, elastic::ExitClass exit_class) {
    k8s::PodState state;
    state.phase = Phase::kEnded;
    state.exit_code = exit_code;
    state.exit_class = exit_class;
    state.last_words = "its last words";
    return state;
  }
  void Pod(int64_t number, k8s::PodState state, bool gone = false) {
    job_.OnMasterPod(number, "pod-" + std::to_string(number), std::move(state), gone);
  }
  // The next master is made and runs.
  void Make(double after) {
    ASSERT_EQ(job_.NeedNow(At(after)), Need::kMaster);
    job_.OnMade(At(after));
    Pod(job_.newest(), Running());
    ASSERT_EQ(job_.NeedNow(At(after)), Need::kNothing);
  }

  KeptJob job_;
};

TEST_F(KeptJobTest, OtherPodsWaitUntilTheFirstMasterHasItsNode) {
  using FirstMaster = KeptJob::FirstMaster;
  EXPECT_EQ(job_.first_master(), FirstMaster::kWaits) << "it is not made yet";
  k8s::PodState state;
  Pod(1, state);
  EXPECT_EQ(job_.first_master(), FirstMaster::kWaits);
  state.node = "n1";
  Pod(1, state);
  EXPECT_EQ(job_.first_master(), FirstMaster::kPlaced);
  KeptJob suspended = job_, given_up = job_, followed = job_;
  suspended.Suspend(true, false);
  EXPECT_EQ(suspended.first_master(), FirstMaster::kOver);
  given_up.GiveUp(Cancelled("by its user"));
  EXPECT_EQ(given_up.first_master(), FirstMaster::kOver);
  followed.Follow(2);
  EXPECT_EQ(followed.first_master(), FirstMaster::kOver);
  Pod(1, Ended(0));
  EXPECT_EQ(job_.first_master(), FirstMaster::kOver);
}

TEST_F(KeptJobTest, MastersFollowEachOtherUntilOneHasSucceeded) {
  Make(0);
  EXPECT_EQ(job_.newest(), 1);
  EXPECT_TRUE(job_.runs());
  Pod(1, Ended(137));
  Make(100);
  EXPECT_EQ(job_.newest(), 2);
  Pod(2, Ended(0));
  EXPECT_EQ(job_.NeedNow(At(101)), Need::kEnd);
  EXPECT_FALSE(job_.given_up().has_value());
  EXPECT_EQ(job_.pods().size(), 2U);
}

TEST_F(KeptJobTest, AMasterThatLeavesIsGoneOrIsSilentIsFollowed) {
  Make(0);
  k8s::PodState leaving = Running();
  leaving.leaving = true;
  Pod(1, leaving);
  Make(100);
  Pod(2, Running(), true);
  Make(200);
  job_.OnSilent(2, At(300));  // no longer the newest
  EXPECT_EQ(job_.NeedNow(At(300)), Need::kNothing);
  job_.OnSilent(3, At(300));
  Make(300);
  EXPECT_EQ(job_.newest(), 4);
}

// Its node has lost its power; the scheduler learns of that much later.
// Deleted while the watch was broken off.
TEST_F(KeptJobTest, AMasterThatNoWatchHasShownIsFollowed) {
  ASSERT_EQ(job_.NeedNow(At(0)), Need::kMaster);
  job_.OnMade(At(0));
  EXPECT_EQ(job_.NeedNow(At(100)), Need::kNothing);
  EXPECT_EQ(job_.NeedNow(At(200)), Need::kMaster);
  EXPECT_EQ(job_.newest(), 2);
  EXPECT_TRUE(job_.pods().empty());
  job_.OnMade(At(200));
  Pod(1, Running());  // it is there after all, and is deleted in the end
  EXPECT_EQ(job_.NeedNow(At(201)), Need::kNothing);
  EXPECT_EQ(job_.pods().size(), 1U);
}

TEST_F(KeptJobTest, TheNodeOfASilentMasterIsAvoided) {
  Make(0);
  k8s::PodState running = Running();
  running.node = "node-1";
  Pod(1, running);
  job_.OnSilent(1, At(100));
  ASSERT_EQ(job_.NeedNow(At(100)), Need::kMaster);
  EXPECT_EQ(job_.avoided(At(100)), std::vector<std::string>{"node-1"});
  EXPECT_TRUE(job_.avoided(At(300)).empty()) << "its node may be back";
  job_.OnMade(At(100));
  // It is placed there nevertheless.
  k8s::PodState placed;
  placed.node = "node-1";
  Pod(2, placed);
  EXPECT_EQ(job_.NeedNow(At(101)), Need::kNothing);
  EXPECT_EQ(job_.NeedNow(At(103)), Need::kNothing);
  EXPECT_EQ(job_.NeedNow(At(105)), Need::kMaster) << "no kubelet has said anything of it";
  EXPECT_EQ(job_.newest(), 3);
  job_.OnMade(At(105));
  placed.node = "node-2";
  Pod(3, placed);
  EXPECT_EQ(job_.NeedNow(At(106)), Need::kNothing);
  EXPECT_EQ(job_.NeedNow(At(120)), Need::kNothing) << "a kubelet may be busy";
  EXPECT_EQ(job_.NeedNow(At(170)), Need::kMaster);
}

TEST_F(KeptJobTest, MastersThatAreLostAtOnceAreFollowedLaterAndLater) {
  Make(0);
  Pod(1, Ended(137));
  Make(0);  // the first loss is an accident
  Pod(2, Ended(137));
  EXPECT_EQ(job_.NeedNow(At(0)), Need::kNothing);
  EXPECT_EQ(job_.NeedNow(At(0.1)), Need::kMaster);
  job_.OnMade(At(0.1));
  Pod(3, Ended(137));
  EXPECT_EQ(job_.NeedNow(At(0.1)), Need::kNothing);
  EXPECT_EQ(job_.NeedNow(At(0.2)), Need::kNothing);
  EXPECT_EQ(job_.NeedNow(At(0.3)), Need::kMaster);
}

TEST_F(KeptJobTest, NineMastersThatAreLostAtOnceEndTheJob) {
  for (int64_t number = 1; number <= 9; ++number) {
    // Later than the longest wait, sooner than a master counts as having been of use.
    const TimePoint now = At(static_cast<double>(number) * 12);
    ASSERT_EQ(job_.NeedNow(now), Need::kMaster) << number;
    ASSERT_EQ(job_.newest(), number);
    job_.OnMade(now);
    Pod(number, Ended(1));
    EXPECT_NE(job_.NeedNow(now), number == 9 ? Need::kNothing : Need::kEnd) << number;
  }
  EXPECT_EQ(job_.given_up()->message(),
            "9 masters were lost one after the other; the last one ended with exit code 1: its "
            "last words");
}

TEST_F(KeptJobTest, AMasterThatCannotBeConfiguredEndsTheJob) {
  Make(0);
  Pod(1, Ended(126, elastic::ExitClass::kConfiguration));
  EXPECT_EQ(job_.NeedNow(At(1)), Need::kEnd);
  EXPECT_EQ(job_.given_up()->message(), "its last words");
}

// A registry may be away for a while.
TEST_F(KeptJobTest, AMasterWithoutItsImageIsWaitedForForFiveMinutes) {
  Make(0);
  k8s::PodState waits;
  waits.node = "n";
  waits.accepted = true;
  waits.lacks_image = true;
  waits.waiting_for = "ErrImagePull: i/o timeout";
  Pod(1, waits);
  EXPECT_EQ(job_.NeedNow(At(1)), Need::kNothing);
  EXPECT_EQ(job_.trouble()->reason, "MasterWaits");
  EXPECT_EQ(job_.NeedNow(At(300)), Need::kNothing);
  EXPECT_EQ(job_.NeedNow(At(302)), Need::kEnd);
  EXPECT_NE(job_.given_up()->message().find("300 seconds: ErrImagePull: i/o timeout"),
            std::string::npos)
      << job_.given_up()->message();
}

TEST_F(KeptJobTest, TheFirstReasonToGiveUpStays) {
  Make(0);
  job_.GiveUp(Cancelled("its TrainingJob was deleted"));
  job_.GiveUp(Internal("no image"));
  EXPECT_EQ(job_.NeedNow(At(1)), Need::kEnd);
  EXPECT_EQ(job_.given_up()->message(), "its TrainingJob was deleted");
}

TEST_F(KeptJobTest, ASuspendedJobHasNoMasterUntilItIsResumed) {
  Make(0);
  job_.Suspend(true, false);
  EXPECT_EQ(job_.NeedNow(At(1)), Need::kNothing);  // its master makes a checkpoint first
  Pod(1, Ended(kSuspendedExit));
  EXPECT_EQ(job_.NeedNow(At(2)), Need::kClear);
  job_.OnClearing(At(3));
  EXPECT_EQ(job_.NeedNow(At(2)), Need::kNothing);
  Pod(1, Ended(kSuspendedExit), true);
  job_.Suspend(true, true);
  EXPECT_EQ(job_.NeedNow(At(4)), Need::kNothing);
  job_.Suspend(false, true);
  EXPECT_EQ(job_.NeedNow(At(5)), Need::kMaster);
  EXPECT_EQ(job_.newest(), 2);
}

// A pod that was told to go ends with 0, too.
TEST_F(KeptJobTest, AMasterThatLeftIsFollowedWhateverItsExitCode) {
  Make(0);
  Pod(1, Ended(0, elastic::ExitClass::kPreempted));
  EXPECT_EQ(job_.NeedNow(At(1)), Need::kMaster);
  EXPECT_EQ(job_.newest(), 2);
}

TEST_F(KeptJobTest, ASuspendedMasterDeletesItsOwnPod) {
  Make(0);
  job_.Suspend(true, true);
  k8s::PodState leaving = Running();
  leaving.leaving = true;
  Pod(1, leaving);
  EXPECT_EQ(job_.NeedNow(At(1)), Need::kClear);
  job_.OnClearing(At(2));
  Pod(1, Ended(0, elastic::ExitClass::kPreempted));
  EXPECT_EQ(job_.NeedNow(At(1)), Need::kNothing);
  Pod(1, Ended(0, elastic::ExitClass::kPreempted), true);
  EXPECT_EQ(job_.NeedNow(At(4)), Need::kNothing);
  job_.Suspend(false, true);
  EXPECT_EQ(job_.NeedNow(At(5)), Need::kMaster);
}

// Whichever is heard of first.
TEST_F(KeptJobTest, AJobWhoseServiceAndPodsAreGoneIsCancelled) {
  Make(0);
  job_.Suspend(true, true);
  job_.OnServiceGone();
  EXPECT_EQ(job_.NeedNow(At(1)), Need::kNothing);
  Pod(1, Ended(kSuspendedExit), true);
  EXPECT_EQ(job_.NeedNow(At(1)), Need::kEnd);
  EXPECT_EQ(job_.given_up()->code(), Code::kCancelled);
}

TEST_F(KeptJobTest, WhoTakesChargeKeepsTheMasterThatAnotherKeeperMade) {
  job_.Follow(3);
  Pod(3, Running());
  EXPECT_EQ(job_.NeedNow(At(0)), Need::kNothing);
  job_.TakeCharge();
  EXPECT_EQ(job_.NeedNow(At(0)), Need::kNothing);
  EXPECT_EQ(job_.newest(), 3);
  job_.Follow(2);  // seen late
  EXPECT_EQ(job_.newest(), 3);
}

TEST_F(KeptJobTest, AMasterOfWhichNoPodIsKnownIsFollowed) {
  job_.Follow(3);
  job_.TakeCharge();
  EXPECT_EQ(job_.NeedNow(At(0)), Need::kMaster);
  EXPECT_EQ(job_.newest(), 4);
}

TEST_F(KeptJobTest, AJobThatHasNoMasterYetGetsItsFirst) {
  job_.Follow(0);
  job_.TakeCharge();
  EXPECT_EQ(job_.NeedNow(At(0)), Need::kMaster);
  EXPECT_EQ(job_.newest(), 1);
}

TEST_F(KeptJobTest, AMasterThatCannotBeMadeNowIsMadeLaterUnlessItNeverCan) {
  ASSERT_EQ(job_.NeedNow(At(0)), Need::kMaster);
  job_.OnRefused(k8s::Fault::kServer, Unavailable("not now"), At(0));
  EXPECT_EQ(job_.NeedNow(At(0.9)), Need::kNothing);
  EXPECT_EQ(job_.NeedNow(At(1)), Need::kMaster);
  EXPECT_EQ(job_.newest(), 1);
  job_.OnRefused(k8s::Fault::kForbidden, Unavailable("no right to create pods"), At(1));
  EXPECT_EQ(job_.NeedNow(At(1)), Need::kEnd);
  EXPECT_EQ(job_.given_up()->message(), "no right to create pods");
}

TEST_F(KeptJobTest, AMasterWhoseServiceIsGoneIsCancelled) {
  ASSERT_EQ(job_.NeedNow(At(0)), Need::kMaster);
  job_.OnRefused(k8s::Fault::kNotFound, Unavailable("no such service"), At(0));
  EXPECT_EQ(job_.NeedNow(At(0)), Need::kEnd);
  EXPECT_EQ(job_.given_up()->code(), Code::kCancelled);
}

}  // namespace
}  // namespace sluice::executor
