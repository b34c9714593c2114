// TrainingJobs that users create, over a fake API server.
#include "executor/pods/training_jobs.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/base64.h"
#include "base/log.h"
#include "base/mutex.h"
#include "k8s/api_verbs.h"
#include "k8s/training_job.h"
#include "tests/k8s/tested_api_server.h"

namespace sluice::executor {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr int kLooks = 12'000;  // a minute of them
constexpr char kIsSource[] = R"({"sluice.dev/source":"true"})";

class TrainingJobsTest : public ::testing::Test {
 protected:
  TrainingJobsTest() {
    TrainingJobs::Hooks hooks;
    hooks.source.begin = [this](const TrainingJobRequest& request,
                                const std::stop_token&) -> Result<int64_t> {
      if (during_) {
        during_(request);
      }
      const MutexLock lock(mutex_);
      begun_.push_back(request.source_url);
      return int64_t{7};
    };
    hooks.source.find = [this](const TrainingJobRequest&, int64_t,
                               const std::stop_token&) -> Result<TrainingJobRow> {
      const MutexLock lock(mutex_);
      return row_;
    };
    hooks.source.end = [this](const TrainingJobRequest& request, int64_t job, const Status& why,
                              const std::stop_token&) -> Result<bool> {
      const MutexLock lock(mutex_);
      if (failing_ends_ > 0) {
        --failing_ends_;
        return Unavailable("the database does not answer");
      }
      ends_.push_back(
          fmt::format("{} {} {}: {}", request.name, request.source_url, job, why.message()));
      return true;
    };
    hooks.deleted = [](const std::string&) {};
    hooks.suspended = [this](const std::string&, bool wanted, bool) { suspended_ = wanted; };
    hooks.late = [](const std::string&, const Status&) {};
    auto jobs =
        TrainingJobs::Start(server_.client(), server_.namespace_name(), "gateway", hooks, {});
    EXPECT_TRUE(jobs.ok()) << jobs.status().ToString();
    jobs_ = *std::move(jobs);
  }

  void CreateSecret(const std::string& name, const std::string& labels, const std::string& value) {
    const auto made = k8s::CreateAll(
        server_.client(),
        {{k8s::kSecrets, server_.namespace_name(),
          fmt::format(R"({{"apiVersion":"v1","kind":"Secret","metadata":{{"name":"{}",)"
                      R"("labels":{}}},"data":{{"token":"{}"}}}})",
                      name, labels, EncodeBase64(value))}},
        {});
    ASSERT_TRUE(made.at(0).ok()) << made.at(0).status.ToString();
  }
  void CreateJob(const std::string& name, const std::string& secret) {
    k8s::TrainingJobSpec spec;
    spec.statement = "SELECT * FROM t TO TRAIN DNNClassifier LABEL y INTO m";
    spec.source_secret = secret;
    spec.source_key = "token";
    const auto made =
        k8s::CreateAll(server_.client(),
                       {{k8s::kTrainingJobs, server_.namespace_name(),
                         k8s::BuildTrainingJob(server_.namespace_name(), name, spec)}},
                       {});
    ASSERT_TRUE(made.at(0).ok()) << made.at(0).status.ToString();
  }
  // The conditions that its status has, once there is one: "Failed True Refused MESSAGE".
  std::string ConditionsOf(const std::string& name) {
    for (int i = 0; i < kLooks; ++i) {
      const auto found =
          k8s::GetObject(server_.client(), k8s::kTrainingJobs, server_.namespace_name(), name, {});
      std::string text;
      for (const k8s::Condition& each :
           k8s::ParseTrainingJobStatus(found.object.json).value().conditions) {
        text += fmt::format("{} {} {} {}\n", each.type, each.status, each.reason, each.message);
      }
      if (!text.empty()) {
        return text;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return "";
  }
  std::vector<std::string> Begun() {
    const MutexLock lock(mutex_);
    return begun_;
  }

  void Ends(catalog::JobState state, const std::string& error = "") {
    const MutexLock lock(mutex_);
    row_.job.state = state;
    row_.job.model = "m";
    row_.job.error = error;
    row_.job.finished_micros = 1'700'000'000'000'000;
    row_.version = 3;
  }
  k8s::TrainingJobStatus StatusOf(const std::string& name) {
    const auto found =
        k8s::GetObject(server_.client(), k8s::kTrainingJobs, server_.namespace_name(), name, {});
    return k8s::ParseTrainingJobStatus(found.object.json).value();
  }
  bool IsSuspended() const { return suspended_; }
  // As with `kubectl patch --type=merge`.
  void Edit(const std::string& name, const std::string& patch) {
    const auto edited = k8s::PatchObject(server_.client(), k8s::kTrainingJobs,
                                         server_.namespace_name(), name, "", patch, {});
    EXPECT_TRUE(edited.ok()) << edited.status.ToString();
  }
  void AwaitCondition(const std::string& name, const std::string& condition) {
    for (int i = 0; i < kLooks && ConditionsOf(name).find(condition) == std::string::npos; ++i) {
      server_.clock().Advance(std::chrono::milliseconds(100));
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    EXPECT_THAT(ConditionsOf(name), HasSubstr(condition));
  }
  void AwaitEvent(const std::string& reason) {
    const auto found = [&] {
      const k8s::Listing events =
          k8s::ListObjects(server_.client(), {k8s::kEvents, server_.namespace_name(), ""}, {});
      return std::any_of(events.objects.begin(), events.objects.end(), [&](const auto& event) {
        return event.json.find(fmt::format(R"("reason":"{}")", reason)) != std::string::npos;
      });
    };
    for (int i = 0; i < kLooks && !found(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    EXPECT_TRUE(found()) << reason;
  }
  // Once there is one.
  std::vector<std::string> AwaitEnds() {
    for (int i = 0; i < kLooks; ++i) {
      {
        const MutexLock lock(mutex_);
        if (!ends_.empty()) {
          return ends_;
        }
      }
      server_.clock().Advance(std::chrono::seconds(1));
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return {};
  }
  void AwaitStart(const std::string& name) {
    for (int i = 0; i < kLooks && StatusOf(name).started.empty(); ++i) {
      server_.clock().Advance(std::chrono::milliseconds(100));
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    EXPECT_NE(StatusOf(name).started, "") << name;
  }
  k8s::TrainingJobStatus AwaitEnd(const std::string& name) {
    k8s::TrainingJobStatus status = StatusOf(name);
    for (int i = 0; i < kLooks && status.ended.empty(); ++i) {
      server_.clock().Advance(std::chrono::seconds(1));
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      status = StatusOf(name);
    }
    return status;
  }

  k8s::TestedApiServer server_{false};
  std::function<void(const TrainingJobRequest&)> during_;  // each begin
  std::atomic<bool> suspended_ = false;                    // as reported last
  Mutex mutex_;
  TrainingJobRow row_ GUARDED_BY(mutex_);
  std::vector<std::string> begun_ GUARDED_BY(mutex_);  // the sources of the jobs
  std::vector<std::string> ends_ GUARDED_BY(mutex_);   // of jobs in the gateway's process
  int failing_ends_ GUARDED_BY(mutex_) = 0;            // as many calls fail first
  std::unique_ptr<TrainingJobs> jobs_;
};

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
  for (int i = 0; i < kLooks; ++i) {  // it deletes it when it has heard of its end
    const auto found =
        k8s::GetObject(server_.client(), k8s::kTrainingJobs, server_.namespace_name(), "good", {});
    if (found.fault == k8s::Fault::kNotFound) {
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
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
  for (int i = 0; i < kLooks && !IsSuspended(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_TRUE(IsSuspended());
  Edit("trees", R"({"spec":{"workers":{"max":2}}})");
  AwaitCondition("trees", "SpecInvalid False Mended");
  EXPECT_EQ(StatusOf("trees").observed_generation, 4);
  Edit("trees", R"({"spec":{"workers":{"max":1},"activeDeadlineSeconds":1}})");
  EXPECT_NE(AwaitEnd("trees").ended, "");
  EXPECT_THAT(ConditionsOf("trees"), HasSubstr("Failed True DeadlineExceeded"));
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
