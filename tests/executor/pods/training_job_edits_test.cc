// TrainingJobs whose spec is changed, and what their status says meanwhile, over a fake API server
// that has no rules of validation.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/mutex.h"
#include "k8s/rfc3339.h"
#include "tests/executor/pods/training_jobs_fixture.h"

namespace sluice::executor {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kShop[] = "postgresql://ann:s3cret@db.example/shop";
constexpr char kCannotChange[] =
    "it cannot change after the job has begun or was refused: create another TrainingJob";

// `kubectl scale` below the minimum, on a server that does not refuse that.
TEST_F(TrainingJobsTest, AnEditThatIsWrongSaysSoAndLeavesTheRestInForce) {
  CreateSecret("shop", kIsSource, "postgresql://ann:s3cret@db.example/shop");
  CreateJob("trees", "shop");
  AwaitStart("trees");
  Edit("trees", R"({"spec":{"workers":{"min":2,"max":1}}})");
  AwaitCondition("trees",
                 "SpecInvalid True InvalidSpec spec.workers.min: 2 is more than "
                 "spec.workers.max, 1");
  EXPECT_EQ(StatusOf("trees").observed_generation, 2);
  AwaitEvent("InvalidSpec");
  Edit("trees", R"({"spec":{"suspend":true}})");
  EXPECT_TRUE(Eventually([this] { return IsSuspended(); }));
  Edit("trees", R"({"spec":{"workers":{"max":2}}})");
  AwaitCondition("trees", "SpecInvalid False Mended");
  EXPECT_EQ(StatusOf("trees").observed_generation, 4);
  Edit("trees", R"({"spec":{"workers":{"max":1},"activeDeadlineSeconds":1}})");
  EXPECT_NE(AwaitEnd("trees").ended, "");
  EXPECT_THAT(ConditionsOf("trees"), HasSubstr("Failed True DeadlineExceeded"));
}

// As `kubectl apply` of a changed file does, where the API server has no rules (before 1.25).
TEST_F(TrainingJobsTest, AStatementThatIsChangedAfterItsBeginSaysThatItCannot) {
  CreateSecret("shop", kIsSource, kShop);
  CreateJob("trees", "shop");
  AwaitStart("trees");
  Edit("trees", R"({"spec":{"statement":"SELECT * FROM u TO TRAIN DNNClassifier INTO n"}})");
  AwaitCondition("trees",
                 fmt::format("SpecInvalid True InvalidSpec spec.statement: {}", kCannotChange));
  AwaitEvent("InvalidSpec");
  Edit("trees",
       R"({"spec":{"statement":"SELECT * FROM t TO TRAIN DNNClassifier LABEL y INTO m"}})");
  AwaitCondition("trees", "SpecInvalid False Mended");
}

// The gateway that has begun it is gone: its status knows.
TEST_F(TrainingJobsTest, AStatementThatIsChangedWhileNoGatewayRunsSaysThatItCannot) {
  CreateSecret("shop", kIsSource, kShop);
  CreateJob("trees", "shop");
  AwaitStart("trees");
  jobs_.reset();
  Edit("trees", R"({"spec":{"statement":"SELECT * FROM u TO TRAIN DNNClassifier INTO n"}})");
  StartGateway();
  AwaitCondition("trees",
                 fmt::format("SpecInvalid True InvalidSpec spec.statement: {}", kCannotChange));
}

TEST_F(TrainingJobsTest, ASecretThatIsChangedAfterItsBeginIsNotItsSource) {
  CreateSecret("shop", kIsSource, kShop);
  CreateSecret("other", kIsSource, "postgresql://eve:s3cret@db.example/shop");
  CreateJob("trees", "shop");
  AwaitStart("trees");
  jobs_.reset();
  Edit("trees", R"({"spec":{"source":{"secretName":"other"}}})");
  StartGateway();
  AwaitCondition("trees", fmt::format("SpecInvalid True InvalidSpec spec.source: {} (this one's is "
                                      "the key 'token' of the Secret 'shop')",
                                      kCannotChange));
  Ends(catalog::JobState::kSucceeded);
  EXPECT_NE(AwaitEnd("trees").ended, "");
  const MutexLock lock(mutex_);
  EXPECT_EQ(found_with_, kShop);
}

// The usual way to ask for another training, which it is not.
TEST_F(TrainingJobsTest, AStatementThatIsChangedAfterTheEndSaysThatItCannot) {
  CreateSecret("shop", kIsSource, kShop);
  CreateJob("trees", "shop");
  AwaitStart("trees");
  Ends(catalog::JobState::kSucceeded);
  AwaitEnd("trees");
  Edit("trees", R"({"spec":{"statement":"SELECT * FROM u TO TRAIN DNNClassifier INTO n"}})");
  AwaitCondition("trees", "SpecInvalid True InvalidSpec spec.statement");
  EXPECT_EQ(Begun().size(), 1U);
}

// One of a gateway of before, or of a statement: it holds from when it is first seen.
TEST_F(TrainingJobsTest, AJobWhoseBeginIsNotKnownIsHeldToWhatItSays) {
  jobs_.reset();
  CreateSecret("shop", kIsSource, kShop);
  CreateJob("trees", "shop");
  const auto written =
      k8s::PatchObject(server_.client(), k8s::kTrainingJobs, server_.namespace_name(), "trees",
                       "status", R"({"status":{"job":7,"master":{"number":1}}})", {});
  ASSERT_TRUE(written.ok()) << written.status.ToString();
  StartGateway();
  EXPECT_TRUE(Becomes([&] { return StatusOf("trees").begun.has_value(); }));
  Edit("trees", R"({"spec":{"statement":"SELECT * FROM u TO TRAIN DNNClassifier INTO n"}})");
  AwaitCondition("trees", "SpecInvalid True InvalidSpec spec.statement");
}

// `kubectl delete` and the end of its job need no valid spec.
TEST_F(TrainingJobsTest, AJobWhoseSpecIsMadeWrongEndsAllTheSame) {
  CreateSecret("shop", kIsSource, kShop);
  CreateJob("trees", "shop");
  AwaitStart("trees");
  jobs_.reset();
  Edit("trees", R"({"spec":{"workers":{"min":2,"max":1}}})");
  Ends(catalog::JobState::kSucceeded);
  StartGateway();
  EXPECT_NE(AwaitEnd("trees").ended, "");
}

TEST_F(TrainingJobsTest, OneThatIsCreatedSuspendedSaysSoAndBeginsWhenItIsResumed) {
  CreateSecret("shop", kIsSource, kShop);
  CreateJob("trees", "shop", true);
  AwaitCondition("trees", "Suspended True NotBegun it begins when spec.suspend is false");
  EXPECT_THAT(ConditionsOf("trees"), HasSubstr("Queued False Suspended"));
  EXPECT_THAT(Begun(), IsEmpty());
  Edit("trees", R"({"spec":{"suspend":false}})");
  AwaitStart("trees");
  EXPECT_THAT(ConditionsOf("trees"),
              AllOf(HasSubstr("Suspended False Resumed"), Not(HasSubstr("Suspended True"))));
  EXPECT_THAT(Begun(), ElementsAre(kShop));
}

TEST_F(TrainingJobsTest, AJobInTheGatewaysProcessThatIsSuspendedSaysThatItGoesOn) {
  CreateSecret("shop", kIsSource, kShop);
  CreateJob("trees", "shop");
  AwaitStart("trees");
  Edit("trees", R"({"spec":{"suspend":true}})");
  AwaitCondition("trees",
                 "Suspended False Refused it trains in the gateway's pod, where it cannot "
                 "be suspended: it goes on");
  AwaitEvent("NotSuspended");
  Edit("trees", R"({"spec":{"suspend":false}})");
  AwaitCondition("trees", "Suspended False NotAsked");
}

TEST_F(TrainingJobsTest, AJobInTheGatewaysProcessIsShownAsItTrains) {
  CreateSecret("shop", kIsSource, kShop);
  CreateJob("trees", "shop");
  {
    const MutexLock lock(mutex_);
    row_.progress.emplace();
    row_.progress->rows_done = 30;
    row_.progress->rows_total = 40;
    row_.progress->loss = 0.25;
  }
  AwaitCondition("trees", "Running True Training");
  EXPECT_THAT(ConditionsOf("trees"), HasSubstr("Queued False Training"));
  EXPECT_EQ(StatusOf("trees").percent, 75);
  EXPECT_EQ(StatusOf("trees").loss, 0.25);
}

// Not from when this gateway has seen it first.
TEST_F(TrainingJobsTest, HowLongItIsKeptCountsFromItsEnd) {
  jobs_.reset();
  CreateSecret("shop", kIsSource, kShop);
  for (const auto& [name, seconds] : {std::pair("long-ago", 7200), std::pair("just-now", 60)}) {
    CreateJob(name, "shop");
    Edit(name, R"({"spec":{"ttlSecondsAfterFinished":3600}})");
    const auto ended = k8s::PatchObject(
        server_.client(), k8s::kTrainingJobs, server_.namespace_name(), name, "status",
        fmt::format(R"({{"status":{{"job":7,"completionTime":"{}",)"
                    R"("conditions":[{{"type":"Complete","status":"True"}}]}}}})",
                    k8s::Rfc3339(WallMicros() - int64_t{seconds} * 1'000'000)),
        {});
    ASSERT_TRUE(ended.ok()) << ended.status.ToString();
  }
  StartGateway();
  EXPECT_TRUE(Becomes([&] { return IsGone("long-ago"); }));
  EXPECT_FALSE(IsGone("just-now"));
}

}  // namespace
}  // namespace sluice::executor
