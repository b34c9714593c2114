// The status that a job's master writes, over a fake API server.
#include "executor/pods/job_status.h"

#include <gtest/gtest.h>

#include <string>

#include "executor/pods/pod_job.pb.h"
#include "k8s/api_verbs.h"
#include "k8s/training_job.h"
#include "k8s/training_job_status.h"
#include "tests/k8s/tested_api_server.h"
#include "tests/support/eventually.h"

namespace sluice::executor {
namespace {

class JobStatusTest : public testing::Test {
 protected:
  JobStatusTest() {
    k8s::TrainingJobSpec spec;
    spec.statement = "SELECT * FROM t TO TRAIN DNNClassifier LABEL y INTO m";
    spec.source_secret = "shop";
    spec.source_key = "source";
    const auto made = k8s::CreateAll(
        server_.client(),
        {{k8s::kTrainingJobs, ns(), k8s::BuildTrainingJob(ns(), "nightly", spec)}}, {});
    EXPECT_TRUE(made.at(0).ok()) << made.at(0).status.ToString();
    config_.set_namespace_name(ns());
    config_.set_training_job("nightly");
    config_.set_training_job_uid(made.at(0).object.uid);
    config_.set_job(7);
  }
  const std::string& ns() { return server_.namespace_name(); }
  k8s::TrainingJobStatus Told() {
    const auto found = k8s::GetObject(server_.client(), k8s::kTrainingJobs, ns(), "nightly", {});
    return k8s::ParseTrainingJobStatus(found.object.json).value();
  }

  k8s::TestedApiServer server_{false};
  PodJobConfig config_;
};

TEST_F(JobStatusTest, AfterItsGatewayHasEndedItNothingRuns) {
  ASSERT_TRUE(k8s::PatchObject(server_.client(), k8s::kTrainingJobs, ns(), "nightly", "status",
                               R"({"status":{"conditions":[{"type":"Failed","status":"True",
                                   "reason":"DeadlineExceeded"}]}})",
                               {})
                  .ok());
  JobStatus status(server_.client(), config_, 1, "job7-master-1");
  status.OnPods({.workers = 1, .waiting_for = ""});
  // Once each second it reads, and writes what differs.
  server_.fake().WaitUntilAsked("get", "trainingjobs", 4);
  EXPECT_FALSE(k8s::Holds(Told(), k8s::kConditionRunning));
  EXPECT_TRUE(k8s::Holds(Told(), k8s::kConditionFailed));
}

TEST_F(JobStatusTest, TheEndSaysWhatWasStored) {
  JobStatus status(server_.client(), config_, 1, "job7-master-1");
  status.OnPods({.workers = 1, .waiting_for = ""});
  EXPECT_TRUE(Eventually([&] { return k8s::Holds(Told(), k8s::kConditionRunning); }));
  catalog::Job row;
  row.id = 7;
  row.model = "m";
  row.state = catalog::JobState::kSucceeded;
  row.started_micros = 1'700'000'000'000'000;
  row.finished_micros = row.started_micros + 7'900'000;
  catalog::ModelVersion stored;
  stored.version = 3;
  stored.rows = 45000;
  stored.weights_sha256 = "0af1";
  status.End(row, stored);
  const k8s::TrainingJobStatus told = Told();
  EXPECT_TRUE(k8s::Holds(told, k8s::kConditionComplete));
  EXPECT_FALSE(k8s::Holds(told, k8s::kConditionRunning));
  EXPECT_EQ(told.version, 3);
  EXPECT_EQ(told.rows, 45000);
  EXPECT_EQ(told.sha256, "0af1");
  EXPECT_EQ(told.seconds, 7);
}

}  // namespace
}  // namespace sluice::executor
