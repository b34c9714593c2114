#include "executor/pods/abandoned_grants.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "k8s/api_verbs.h"
#include "k8s/controller.h"
#include "k8s/training_job.h"
#include "k8s/training_job_status.h"
#include "tests/k8s/tested_api_server.h"

namespace sluice::executor {
namespace {

class AbandonedGrantsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto made = k8s::CreateAll(
        server_.client(),
        {{k8s::kTrainingJobs, where(),
          R"({"apiVersion":"training.sluice/v1alpha1","kind":"TrainingJob","metadata":{"name":"j"},)"
          R"("spec":{"statement":"SELECT 1","source":{"secretName":"s"}}})"}},
        {});
    ASSERT_TRUE(made[0].ok()) << made[0].status.ToString();
    k8s::Grant grant;
    grant.suspend = true;
    const auto patched = k8s::PatchObject(server_.client(), k8s::kTrainingJobs, where(), "j",
                                          "status", k8s::GrantPatch(grant), {});
    ASSERT_TRUE(patched.ok()) << patched.status.ToString();
  }
  const std::string& where() { return server_.namespace_name(); }
  k8s::LeaseClaim Claim(const std::string& holder) {
    return {server_.client(),
            {std::string(k8s::kControllerNamespace), k8s::kControllerLease, holder, 8, {}}};
  }
  void After(int seconds) {
    server_.clock().Advance(std::chrono::seconds(seconds));
    const Status status = grants_.Look({});
    EXPECT_TRUE(status.ok()) << status.ToString();
  }
  bool Suspended() {
    const auto found = k8s::GetObject(server_.client(), k8s::kTrainingJobs, where(), "j", {});
    return k8s::SuspendedByGrant(k8s::ParseTrainingJobStatus(found.object.json).value());
  }

  k8s::TestedApiServer server_{false};
  AbandonedGrants grants_{server_.client(), server_.namespace_name()};
};

TEST_F(AbandonedGrantsTest, AJobWhoseControllerWasRemovedResumes) {
  k8s::LeaseClaim controller = Claim("controller");
  ASSERT_TRUE(controller.Round({})->ours);
  After(0);
  ASSERT_TRUE(controller.Release({}).ok());
  After(1);
  After(AbandonedGrants::kPatienceSeconds - 1);
  EXPECT_TRUE(Suspended()) << "it may only have been restarted";
  After(2);
  EXPECT_FALSE(Suspended());
  k8s::LeaseClaim next = Claim("next");
  EXPECT_TRUE(next.Round({})->ours) << "a new controller acts at once";
}

TEST_F(AbandonedGrantsTest, AndOneWhoseControllerWasLost) {
  k8s::LeaseClaim controller = Claim("controller");
  ASSERT_TRUE(controller.Round({})->ours);
  After(1);
  After(10);  // its Lease has expired
  After(AbandonedGrants::kPatienceSeconds - 1);
  EXPECT_TRUE(Suspended());
  After(2);
  EXPECT_FALSE(Suspended());
}

TEST_F(AbandonedGrantsTest, NotWhileAControllerActs) {
  k8s::LeaseClaim controller = Claim("controller");
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(controller.Round({})->ours);
    After(7);
    After(AbandonedGrants::kPatienceSeconds - 7);  // it was held up, and renews its Lease then
  }
  EXPECT_TRUE(Suspended());
}

TEST_F(AbandonedGrantsTest, AndOneWhoseControllersNamespaceIsGone) {
  After(1);
  After(AbandonedGrants::kPatienceSeconds - 1);
  EXPECT_TRUE(Suspended());
  After(2);
  EXPECT_FALSE(Suspended());
}

}  // namespace
}  // namespace sluice::executor
