#pragma once

// TrainingJobs that users create, over a fake API server; their jobs are played.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/base64.h"
#include "base/mutex.h"
#include "executor/pods/training_jobs.h"
#include "k8s/api_verbs.h"
#include "k8s/training_job.h"
#include "tests/k8s/tested_api_server.h"
#include "tests/support/eventually.h"

namespace sluice::executor {

inline constexpr char kIsSource[] = R"({"sluice.dev/source":"true"})";

class TrainingJobsTest : public ::testing::Test {
 protected:
  TrainingJobsTest() { StartGateway(); }

  // Another one, which knows nothing of the one before.
  void StartGateway() {
    jobs_.reset();
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
    hooks.source.find = [this](const TrainingJobRequest& request, int64_t,
                               const std::stop_token&) -> Result<TrainingJobRow> {
      const MutexLock lock(mutex_);
      found_with_ = request.source_url;
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
  void CreateJob(const std::string& name, const std::string& secret, bool suspend = false) {
    k8s::TrainingJobSpec spec;
    spec.suspend = suspend;
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
    std::string text;
    const auto found = [&] {
      for (const k8s::Condition& each : StatusOf(name).conditions) {
        text += fmt::format("{} {} {} {}\n", each.type, each.status, each.reason, each.message);
      }
      return !text.empty();
    };
    EXPECT_TRUE(Becomes(found)) << name << " has no condition";
    return text;
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
    row_.job.started_micros = row_.job.finished_micros - 7'900'000;
    row_.stored.emplace();
    row_.stored->version = 3;
    row_.stored->rows = 45000;
    row_.stored->weights_sha256 = "0af1";
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
    std::string found;
    EXPECT_TRUE(Becomes([&] {
      found = ConditionsOf(name);
      return found.find(condition) != std::string::npos;
    })) << found
        << "and not " << condition;
  }
  void AwaitEvent(const std::string& reason) {
    const auto found = [&] {
      const k8s::Listing events =
          k8s::ListObjects(server_.client(), {k8s::kEvents, server_.namespace_name(), ""}, {});
      return std::any_of(events.objects.begin(), events.objects.end(), [&](const auto& event) {
        return event.json.find(fmt::format(R"("reason":"{}")", reason)) != std::string::npos;
      });
    };
    EXPECT_TRUE(Eventually(found)) << reason;
  }
  bool IsGone(const std::string& name) {
    return k8s::GetObject(server_.client(), k8s::kTrainingJobs, server_.namespace_name(), name, {})
               .fault == k8s::Fault::kNotFound;
  }
  // While the clock of the gateway and the API server goes on by `step` for each look: what the
  // gateway does later by that clock would otherwise never be done.
  template <typename Condition>
  [[nodiscard]] bool Becomes(Condition condition,
                             std::chrono::milliseconds step = std::chrono::milliseconds(100)) {
    return Eventually([&] {
      if (condition()) {
        return true;
      }
      server_.clock().Advance(step);
      return false;
    });
  }
  // Once there is one.
  std::vector<std::string> AwaitEnds() {
    std::vector<std::string> ends;
    const auto found = [&] {
      const MutexLock lock(mutex_);
      ends = ends_;
      return !ends.empty();
    };
    EXPECT_TRUE(Becomes(found, std::chrono::seconds(1)));
    return ends;
  }
  void AwaitStart(const std::string& name) {
    EXPECT_TRUE(Becomes([&] { return !StatusOf(name).started.empty(); })) << name;
  }
  k8s::TrainingJobStatus AwaitEnd(const std::string& name) {
    k8s::TrainingJobStatus status;
    const auto found = [&] {
      status = StatusOf(name);
      return !status.ended.empty();
    };
    EXPECT_TRUE(Becomes(found, std::chrono::seconds(1))) << name << " has not ended";
    return status;
  }

  k8s::TestedApiServer server_{false};
  std::function<void(const TrainingJobRequest&)> during_;  // each begin
  std::atomic<bool> suspended_ = false;                    // as reported last
  Mutex mutex_;
  TrainingJobRow row_ GUARDED_BY(mutex_);
  std::vector<std::string> begun_ GUARDED_BY(mutex_);  // the sources of the jobs
  std::string found_with_ GUARDED_BY(mutex_);          // the source with which a row was read last
  std::vector<std::string> ends_ GUARDED_BY(mutex_);   // of jobs in the gateway's process
  int failing_ends_ GUARDED_BY(mutex_) = 0;            // as many calls fail first
  std::unique_ptr<TrainingJobs> jobs_;
};

}  // namespace sluice::executor
