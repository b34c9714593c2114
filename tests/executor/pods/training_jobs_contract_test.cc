// Many TrainingJobs at once, with two gateways, over the fake API server and over a real one. The
// test of the latter prints how long they took to begin: `scripts/kubernetes with executor_tests`.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/base64.h"
#include "base/mutex.h"
#include "executor/pods/training_jobs.h"
#include "k8s/api_verbs.h"
#include "k8s/training_job.h"
#include "tests/k8s/applied_kinds.h"
#include "tests/k8s/tested_api_server.h"

namespace sluice::executor {
namespace {

using Elapsed = std::chrono::duration<double>;

constexpr int kJobs = 100, kLost = 10;

class TrainingJobsContract : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam() && !k8s::TestedApiServer::HasReal()) {
      GTEST_SKIP() << "needs a Kubernetes API server: SLUICE_TEST_KUBERNETES";
    }
    server_ = std::make_unique<k8s::TestedApiServer>(GetParam());
    if (GetParam()) {
      k8s::ApplyKinds(server_->namespace_name());
    }
    for (const std::string gateway : {"one", "two"}) {
      gateways_.push_back(
          TrainingJobs::Start(server_->client(), server_->namespace_name(), gateway, Hooks(), {})
              .value());
    }
  }
  void TearDown() override {
    Answer();
    gateways_.clear();
    for (int i = 0; server_ != nullptr && i < kJobs; ++i) {
      k8s::DeleteAll(server_->client(),
                     {{k8s::kTrainingJobs, server_->namespace_name(), NameOf(i), "", 1}}, {});
    }
  }
  static std::string NameOf(int job) { return fmt::format("job-{}", job); }

  // The database: as the catalog does, it has one job for each TrainingJob.
  TrainingJobs::Hooks Hooks() {
    TrainingJobs::Hooks hooks;
    hooks.source.begin = [this](const TrainingJobRequest& request,
                                const std::stop_token&) -> Result<int64_t> {
      MutexLock lock(mutex_);
      if (request.source_url.find("lost.example") != std::string::npos) {
        answered_.wait(lock.native(), [this]() REQUIRES(mutex_) { return answers_; });
      }
      asked_[request.name] += 1;
      return jobs_.emplace(request.uid, static_cast<int64_t>(jobs_.size()) + 1).first->second;
    };
    hooks.source.find = [](const TrainingJobRequest&, int64_t job,
                           const std::stop_token&) -> Result<TrainingJobRow> {
      TrainingJobRow row;
      row.job.id = job;
      row.job.state = catalog::JobState::kSucceeded;
      row.job.model = "m";
      row.job.finished_micros = WallMicros();
      return row;
    };
    hooks.source.end = [](const TrainingJobRequest&, int64_t, const Status&,
                          const std::stop_token&) -> Result<bool> { return true; };
    hooks.deleted = [](const std::string&) {};
    hooks.suspended = [](const std::string&, bool, bool) {};
    hooks.late = [](const std::string&, const Status&) {};
    return hooks;
  }
  void Answer() {
    const MutexLock lock(mutex_);
    answers_ = true;
    answered_.notify_all();
  }

  void CreateJobs() {
    const std::string& where = server_->namespace_name();
    std::vector<k8s::Creation> all;
    for (const std::string secret : {"shop", "lost"}) {
      all.push_back({k8s::kSecrets, where,
                     fmt::format(R"({{"apiVersion":"v1","kind":"Secret","metadata":{{"name":"{}",)"
                                 R"("labels":{{"{}":"true"}}}},"data":{{"source":"{}"}}}})",
                                 secret, k8s::kSourceLabel,
                                 EncodeBase64("postgresql://ann@" + secret + ".example/shop"))});
    }
    for (int i = 0; i < kJobs; ++i) {
      k8s::TrainingJobSpec spec;
      spec.statement = "SELECT * FROM t TO TRAIN DNNClassifier LABEL y INTO m";
      spec.source_secret = i < kLost ? "lost" : "shop";
      all.push_back({k8s::kTrainingJobs, where, k8s::BuildTrainingJob(where, NameOf(i), spec)});
    }
    for (const k8s::ObjectAnswer& made : k8s::CreateAll(server_->client(), all, {})) {
      ASSERT_TRUE(made.ok()) << made.status.ToString();
    }
  }
  // How many of them have these, by status.
  int Count(const std::function<bool(const k8s::TrainingJobStatus&)>& are) {
    const k8s::Listing all = k8s::ListObjects(
        server_->client(), {k8s::kTrainingJobs, server_->namespace_name(), ""}, {});
    EXPECT_TRUE(all.ok()) << all.status.ToString();
    return static_cast<int>(
        std::count_if(all.objects.begin(), all.objects.end(), [&are](const k8s::Object& object) {
          return are(k8s::ParseTrainingJobStatus(object.json).value());
        }));
  }
  bool Await(int count, const std::function<bool(const k8s::TrainingJobStatus&)>& are) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    auto last = std::chrono::steady_clock::now();
    while (Count(are) != count) {
      if (std::chrono::steady_clock::now() > end) {
        return false;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      const auto now = std::chrono::steady_clock::now();
      // No faster: a busy machine must not take longer for one than a claim holds.
      server_->clock().Advance((GetParam() ? 1 : 2) * (now - last));
      last = now;
    }
    return true;
  }

  std::unique_ptr<k8s::TestedApiServer> server_;
  Mutex mutex_;
  std::condition_variable answered_;
  bool answers_ GUARDED_BY(mutex_) = false;  // the lost database
  std::map<std::string, int> asked_ GUARDED_BY(mutex_);
  std::map<std::string, int64_t> jobs_ GUARDED_BY(mutex_);  // by uid
  std::vector<std::unique_ptr<TrainingJobs>> gateways_;
};

TEST_P(TrainingJobsContract, ManyAtOnceBeginThoughSomeDatabasesDoNotAnswer) {
  const auto has_begun = [](const k8s::TrainingJobStatus& status) {
    return status.job.has_value();
  };
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_NO_FATAL_FAILURE(CreateJobs());
  const Elapsed created = std::chrono::steady_clock::now() - begin;
  ASSERT_TRUE(Await(kJobs - kLost, has_begun));
  const Elapsed begun = std::chrono::steady_clock::now() - begin;
  ASSERT_TRUE(Await(kJobs - kLost, HasEnded));
  Answer();
  EXPECT_TRUE(Await(kJobs, HasEnded));
  EXPECT_EQ(Count([](const k8s::TrainingJobStatus& status) {
              return k8s::Holds(status, k8s::kConditionComplete);
            }),
            kJobs);
  const MutexLock lock(mutex_);
  EXPECT_EQ(asked_.size(), size_t{kJobs});
  // For those whose database does not answer for longer than a claim holds, the other gateway asks,
  // too; the catalog's record is what makes that one job.
  int twice = 0;
  for (int i = kLost; i < kJobs; ++i) {
    twice += asked_[NameOf(i)] > 1 ? 1 : 0;
  }
  EXPECT_EQ(twice, 0);
  fmt::print(
      "{} TrainingJobs created in {:.1f} s, {} of them with a database that does not answer: the "
      "others had begun {:.1f} s after the first was created; begun twice: {}\n",
      kJobs, created.count(), kLost, begun.count(), twice);
}

INSTANTIATE_TEST_SUITE_P(Servers, TrainingJobsContract, ::testing::Values(false, true),
                         [](const auto& given) { return given.param ? "Real" : "Fake"; });

}  // namespace
}  // namespace sluice::executor
