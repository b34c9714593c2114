// TrainingJobs that users create, over a fake API server.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"
#include "base/mutex.h"
#include "k8s/api_verbs.h"
#include "tests/executor/pods/training_jobs_fixture.h"

namespace sluice::executor {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST_F(TrainingJobsTest, ASecretWithTheLabelIsItsSource) {
  CreateSecret("shop", kIsSource, "postgresql://ann:s3cret@db.example/shop\n");
  CreateJob("nightly", "shop");
  EXPECT_THAT(ConditionsOf("nightly"),
              AllOf(HasSubstr("job 7 has begun"), Not(HasSubstr("s3cret"))));
  EXPECT_THAT(Begun(), ElementsAre("postgresql://ann:s3cret@db.example/shop"));
}

// As its master may, whose job the gateway is still about to report.
TEST_F(TrainingJobsTest, ItsBeginAndItsEndAreOnRecordAtEveryLevel) {
  log::Start("training_jobs_test", log::Level::kError);
  ::testing::internal::CaptureStderr();
  CreateSecret("s", kIsSource, "postgresql://ann@db/shop");
  CreateJob("good", "s");
  EXPECT_THAT(ConditionsOf("good"), HasSubstr("Queued True Begun"));
  const auto patch = [this](const char* part, const char* json) {
    const auto patched = k8s::PatchObject(server_.client(), k8s::kTrainingJobs,
                                          server_.namespace_name(), "good", part, json, {});
    EXPECT_TRUE(patched.ok()) << patched.status.ToString();
  };
  patch("", R"({"spec":{"ttlSecondsAfterFinished":0}})");
  patch("status", R"({"status":{"conditions":[{"type":"Complete","status":"True"}]}})");
  // It deletes the object when it has heard of its end.
  EXPECT_TRUE(Becomes([this] { return IsGone("good"); }));
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("trainingjob begun name=good job=7"));
  EXPECT_THAT(said, HasSubstr("trainingjob ended name=good job=7 as=Complete"));
}

TEST_F(TrainingJobsTest, WhatOthersWriteIntoItsStatusMeanwhileStays) {
  during_ = [this](const TrainingJobRequest& request) {
    const auto written = k8s::PatchObject(
        server_.client(), k8s::kTrainingJobs, server_.namespace_name(), request.name, "status",
        R"({"status":{"job":7,"conditions":[{"type":"Running","status":"True"}]}})", {});
    EXPECT_TRUE(written.ok()) << written.status.ToString();
  };
  CreateSecret("shop", kIsSource, "postgresql://ann:s3cret@db.example/shop\n");
  CreateJob("nightly", "shop");
  AwaitStart("nightly");
  EXPECT_THAT(ConditionsOf("nightly"), HasSubstr("Running True"));
}

TEST_F(TrainingJobsTest, ADatabaseThatDoesNotAnswerDelaysNobodyElse) {
  std::promise<void> answers;
  const std::shared_future<void> answer = answers.get_future().share();
  during_ = [answer](const TrainingJobRequest& request) {
    if (request.source_url.find("lost.example") != std::string::npos) {
      answer.wait();
    }
  };
  CreateSecret("lost", kIsSource, "postgresql://ann:s3cret@lost.example/shop");
  CreateSecret("shop", kIsSource, "postgresql://ann:s3cret@db.example/shop");
  for (int i = 0; i < 10; ++i) {
    CreateJob(fmt::format("a-lost-{}", i), "lost");
  }
  CreateJob("nightly", "shop");
  AwaitStart("nightly");
  EXPECT_THAT(ConditionsOf("nightly"), HasSubstr("job 7 has begun"));
  answers.set_value();
}

// What runs in the gateway's process has no master that would say so.
TEST_F(TrainingJobsTest, AJobWithoutAMasterEndsToo) {
  CreateSecret("shop", kIsSource, "postgresql://ann:s3cret@db.example/shop\n");
  CreateJob("trees", "shop");
  EXPECT_THAT(ConditionsOf("trees"), HasSubstr("Queued True Begun"));
  Ends(catalog::JobState::kSucceeded);
  const k8s::TrainingJobStatus status = AwaitEnd("trees");
  EXPECT_EQ(status.model, "m");
  EXPECT_EQ(status.version, 3);
  EXPECT_EQ(status.rows, 45000);
  EXPECT_EQ(status.sha256, "0af1");
  EXPECT_EQ(status.seconds, 7);
  EXPECT_EQ(status.percent, 100);
  EXPECT_THAT(ConditionsOf("trees"), AllOf(HasSubstr("Complete True Stored the model m is stored"),
                                           HasSubstr("Queued False"), HasSubstr("Failed False")));
  Ends(catalog::JobState::kFailed, "label 'y' is NULL in 3 of 7 rows");
  CreateJob("worse", "shop");
  AwaitEnd("worse");
  EXPECT_THAT(ConditionsOf("worse"), AllOf(HasSubstr("Failed True Failed label 'y' is NULL"),
                                           HasSubstr("Complete False")));
}

// `kubectl delete -f` of both: the login is known from when the job was begun.
TEST_F(TrainingJobsTest, AJobWithoutAMasterThatIsDeletedIsEnded) {
  CreateSecret("shop", kIsSource, "postgresql://ann:s3cret@db.example/shop");
  CreateJob("trees", "shop");
  AwaitStart("trees");
  {
    const MutexLock lock(mutex_);
    failing_ends_ = 3;
  }
  k8s::DeleteAll(server_.client(),
                 {{k8s::kSecrets, server_.namespace_name(), "shop", "", 1},
                  {k8s::kTrainingJobs, server_.namespace_name(), "trees", "", 1}},
                 {});
  EXPECT_THAT(AwaitEnds(),
              ElementsAre("trees postgresql://ann:s3cret@db.example/shop 7: its TrainingJob was "
                          "deleted"));
}

TEST_F(TrainingJobsTest, AJobThatIsDeletedWhileItBeginsIsEnded) {
  during_ = [this](const TrainingJobRequest& request) {
    k8s::DeleteAll(server_.client(),
                   {{k8s::kTrainingJobs, server_.namespace_name(), request.name, "", 1}}, {});
  };
  CreateSecret("shop", kIsSource, "postgresql://ann:s3cret@db.example/shop");
  CreateJob("trees", "shop");
  EXPECT_THAT(AwaitEnds(), ElementsAre(HasSubstr("7: its TrainingJob was deleted")));
}

TEST_F(TrainingJobsTest, AJobWithoutAMasterThatIsLateIsEnded) {
  CreateSecret("shop", kIsSource, "postgresql://ann:s3cret@db.example/shop");
  CreateJob("trees", "shop");
  AwaitStart("trees");
  Edit("trees", R"({"spec":{"activeDeadlineSeconds":1}})");
  EXPECT_NE(AwaitEnd("trees").ended, "");
  EXPECT_THAT(AwaitEnds(), ElementsAre(HasSubstr("longer than 1 seconds")));
  EXPECT_THAT(ConditionsOf("trees"),
              AllOf(HasSubstr("Failed True DeadlineExceeded the training has taken longer than 1"),
                    HasSubstr("Queued False")));
}

// A gateway that has claimed it and is still at it, or one whose answer was lost.
TEST_F(TrainingJobsTest, OneThatHasAJobInTheMeantimeIsNotBegunAgain) {
  CreateSecret("shop", kIsSource, "postgresql://ann:s3cret@db.example/shop");
  std::atomic<int> begun = 0;
  during_ = [&begun](const TrainingJobRequest&) { ++begun; };
  for (int i = 0; i < 20; ++i) {
    CreateJob(fmt::format("nightly-{}", i), "shop");
  }
  for (int i = 0; i < 20; ++i) {
    AwaitStart(fmt::format("nightly-{}", i));
  }
  for (int i = 0; i < 40; ++i) {
    server_.clock().Advance(std::chrono::seconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(begun, 20);
}

// Like one that does not exist, so that nobody learns which Secrets there are; it waits for both.
TEST_F(TrainingJobsTest, AnyOtherSecretIsNoSource) {
  CreateSecret("gateway-token", "{}", "s3cret");
  CreateSecret("not-any-more", R"({"sluice.dev/source":"false"})",
               "postgresql://ann:s3cret@db.example/shop");
  std::vector<std::string> told;
  for (const std::string secret : {"gateway-token", "not-any-more", "nowhere"}) {
    CreateJob("of-" + secret, secret);
    std::string conditions = ConditionsOf("of-" + secret);
    EXPECT_THAT(conditions,
                AllOf(HasSubstr("Queued True Waiting spec.source.secretName: there is no Secret '" +
                                secret + "' with the label sluice.dev/source: \"true\""),
                      Not(HasSubstr("s3cret"))));
  }
  EXPECT_THAT(Begun(), IsEmpty());
}

TEST_F(TrainingJobsTest, WhatASourcesSecretHoldsIsNeverRepeated) {
  int number = 0;
  for (const char* value :
       {"s3cret", "s3cret:s3cret", "mysql://s3cret@host/s3cret", "sqlite:/var/s3cret.db",
        "postgresql://ann:s3cret?s3cret@db.example/shop"}) {
    const std::string name = fmt::format("wrong-{}", ++number);
    CreateSecret(name, kIsSource, value);
    CreateJob(name, name);
    EXPECT_THAT(ConditionsOf(name),
                AllOf(HasSubstr("Failed True Refused spec.source.key: 'token' of the Secret '" +
                                name + "' is not the URL of a PostgreSQL database"),
                      Not(HasSubstr("s3cret"))))
        << value;
  }
  EXPECT_THAT(Begun(), IsEmpty());
}

}  // namespace
}  // namespace sluice::executor
