#include "k8s/training_job_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace sluice::k8s {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TrainingJobStatus FullStatus() {
  TrainingJobStatus status;
  status.observed_generation = 3;
  status.conditions = {{"Running", "True", "Trains", "", "2026-01-02T03:04:05Z", 3}};
  status.job = 7;
  status.begun = BegunSpec{"0a1b", "shop", "source"};
  status.model = "m";
  status.version = 2;
  status.rows = 45000;
  status.sha256 = "0af1";
  status.seconds = 7;
  status.master_number = 2;
  status.master_pod = "j-master-2";
  status.running_workers = 4;
  status.granted_workers = 6;
  status.most_workers = 8;
  status.waiting_workers = 2;
  status.waiting_for = "Unschedulable";
  status.running_servers = 2;
  status.percent = 50;
  status.seconds_left = 12;
  status.loss = 0.25;
  status.rows_per_second = 1e6;
  status.scalings = {{"2026-01-02T03:04:05Z", 2, 4, "granted"}};
  status.selector = "a=b";
  status.can_suspend = true;
  status.started = "2026-01-02T03:04:05Z";
  return status;
}

TEST(TrainingJobStatus, APatchIsReadBackAsWhatItMakes) {
  const TrainingJobStatus after = FullStatus();
  const std::string patch = StatusPatch(TrainingJobStatus(), after).value();
  EXPECT_EQ(ParseTrainingJobStatus(patch).value(), after);
}

TEST(TrainingJobStatus, APatchNamesWhatDiffersAndNothingElse) {
  const TrainingJobStatus before = FullStatus();
  EXPECT_EQ(StatusPatch(before, before), std::nullopt);
  TrainingJobStatus after = before;
  after.percent = 51;
  after.running_workers = 5;
  after.seconds_left.reset();
  after.waiting_for.clear();
  EXPECT_EQ(StatusPatch(before, after),
            R"({"status":{"workers":{"running":5,"waitingFor":null},"progress":51,)"
            R"("secondsLeft":null}})");
}

TEST(TrainingJobStatus, TheGrantIsTheControllersAlone) {
  TrainingJobStatus before, after;
  before.grant = Grant{2, {}, {}};
  after.grant = Grant{3, {}, {}};
  EXPECT_EQ(StatusPatch(before, after), std::nullopt);
  EXPECT_EQ(
      GrantPatch(Grant{3, {"w-1"}, {"node1"}}),
      R"({"status":{"grant":{"workers":3,"giveUp":["w-1"],"nodes":["node1"],"suspend":false}}})");
  const Grant suspended{0, {}, {}, "a higher one needs the room", true};
  EXPECT_EQ(ParseTrainingJobStatus(GrantPatch(suspended)).value().grant, suspended);
  EXPECT_TRUE(SuspendedByGrant(ParseTrainingJobStatus(GrantPatch(suspended)).value()));
  EXPECT_FALSE(SuspendedByGrant(before));
  EXPECT_EQ(GrantPatch(std::nullopt), R"({"status":{"grant":null}})");
  EXPECT_EQ(ParseTrainingJobStatus(GrantPatch(Grant{3, {"w-1"}, {"node1"}})).value().grant,
            (Grant{3, {"w-1"}, {"node1"}}));
}

TEST(TrainingJobStatus, ALossThatIsNoNumberIsNotWritten) {
  for (const double loss :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    TrainingJobStatus after;
    after.percent = 1;
    after.loss = loss;
    EXPECT_EQ(StatusPatch(TrainingJobStatus(), after), R"({"status":{"progress":1}})");
  }
}

TEST(TrainingJobStatus, WhatIsDamagedCountsAsAbsent) {
  const TrainingJobStatus status =
      ParseTrainingJobStatus(
          R"({"status":{"workers":7,"loss":"small","conditions":[1,{"type":"Running"}],)"
          R"("master":{"number":-1},"grant":[],"scalings":{"x":1},"job":"7"}})")
          .value();
  EXPECT_EQ(status.running_workers, 0U);
  EXPECT_FALSE(status.loss.has_value());
  EXPECT_FALSE(status.grant.has_value());
  EXPECT_FALSE(status.job.has_value());
  EXPECT_EQ(status.master_number, 0U);
  EXPECT_FALSE(Holds(status, kConditionRunning));
  EXPECT_EQ(ParseTrainingJobStatus("{}").value(), TrainingJobStatus());
  EXPECT_FALSE(ParseTrainingJobStatus("7").ok());
}

TEST(TrainingJobStatus, AConditionChangesItsTimeWithItsStatusOnly) {
  TrainingJobStatus status;
  status.observed_generation = 2;
  SetCondition(status, kConditionRunning, true, "Trains", "4 workers", "t1");
  SetCondition(status, kConditionRunning, true, "Trains", "5 workers", "t2");
  ASSERT_EQ(status.conditions.size(), 1U);
  EXPECT_EQ(status.conditions[0], (Condition{"Running", "True", "Trains", "5 workers", "t1", 2}));
  SetCondition(status, kConditionRunning, false, "Ended", "", "t3");
  EXPECT_EQ(status.conditions[0].since, "t3");
  EXPECT_FALSE(Holds(status, kConditionRunning));
  SetCondition(status, kConditionComplete, true, "Stored", "", "t3");
  EXPECT_TRUE(Holds(status, kConditionComplete));
  EXPECT_FALSE(Holds(status, kConditionFailed));
}

TEST(TrainingJobStatus, AnEmptyTextIsNotWritten) {
  TrainingJobStatus after;
  SetCondition(after, kConditionRunning, true, "Trains", "", "t1");
  AddScaling(after, {"t1", 1, 2, ""});
  EXPECT_EQ(StatusPatch(TrainingJobStatus(), after),
            R"({"status":{"conditions":[{"type":"Running","status":"True","reason":"Trains",)"
            R"("lastTransitionTime":"t1"}],"scalings":[{"time":"t1","from":1,"to":2}]}})");
}

TEST(TrainingJobStatus, SomebodyElsesConditionsSurvive) {
  TrainingJobStatus before =
      ParseTrainingJobStatus(R"({"status":{"conditions":[{"type":"Admitted","status":"Unknown",)"
                             R"("lastTransitionTime":"t0"}]}})")
          .value();
  TrainingJobStatus after = before;
  SetCondition(after, kConditionQueued, true, "Unschedulable", "no node is large enough", "t1");
  const std::string patch = StatusPatch(before, after).value();
  EXPECT_THAT(patch, HasSubstr(R"({"type":"Admitted","status":"Unknown")"));
  EXPECT_THAT(patch, HasSubstr(R"({"type":"Queued","status":"True")"));
}

TEST(TrainingJobStatus, TheLastScalingsAreKept) {
  TrainingJobStatus status;
  for (uint32_t i = 0; i < 50; ++i) {
    AddScaling(status, {"t", i, i + 1, "granted"});
  }
  ASSERT_EQ(status.scalings.size(), kScalingsKept);
  EXPECT_EQ(status.scalings.front().from, 30U);
  EXPECT_EQ(status.scalings.back().to, 50U);
  EXPECT_THAT(StatusPatch(TrainingJobStatus(), status).value(), Not(HasSubstr(R"("from":29)")));
}

}  // namespace
}  // namespace sluice::k8s
