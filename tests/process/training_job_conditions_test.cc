#include <fmt/core.h>
#include <gmock/gmock.h>

#include "catalog/source_url.h"
#include "executor/pods/training_job_work.h"
#include "server/statements/training_job.h"
#include "tests/process/pods_fixture.h"

// What the status of TrainingJobs says that have no master to write it.
namespace sluice::executor {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kEndlessTrees[] =
    "SELECT a, b, y FROM points TO TRAIN xgboost.gbtree WITH tree_method='exact', "
    "objective='binary:logistic', "
    "train.num_boost_round=10000 LABEL y INTO m";

TEST_F(Pods, ATrainingJobOfTreesSaysHowFarItIsAndThatItCannotBeSuspended) {
  CreateTrainingJob("trees", kEndlessTrees);
  EXPECT_TRUE(Eventually([&] { return StatusOf("trees").loss.value_or(0) > 0; }));
  const k8s::TrainingJobStatus told = StatusOf("trees");
  EXPECT_TRUE(k8s::Holds(told, k8s::kConditionRunning)) << ConditionsOf("trees");
  EXPECT_FALSE(k8s::Holds(told, k8s::kConditionQueued)) << ConditionsOf("trees");
  EXPECT_GE(told.percent.value_or(-1), 0);
  EXPECT_GT(told.rows_per_second.value_or(0), 0);
  PatchTrainingJob("trees", R"({"spec":{"suspend":true}})");
  EXPECT_TRUE(Eventually([&] {
    return ConditionsOf("trees").find("Suspended False Refused") != std::string::npos;
  })) << ConditionsOf("trees");
  EXPECT_EQ(catalog_->jobs().Find(1)->state, catalog::JobState::kRunning);
  k8s::DeleteAll(kubelet_->client(),
                 {{k8s::kTrainingJobs, kubelet_->namespace_name(), "trees", "", 1}}, {});
  EXPECT_TRUE(
      Eventually([&] { return catalog_->jobs().Find(1)->state == catalog::JobState::kCancelled; }));
}

// It is not the Secret's login that is refused.
TEST_F(Pods, ADatabaseThatTheGatewayCannotUseIsNoFaultOfTheSecretsLogin) {
  TrainingJobRequest request;
  request.name = "trees";
  request.uid = "uid-of-trees";
  request.spec.statement = kEndlessTrees;
  request.spec.source_secret = "the-secret";
  request.source_url = catalog::WithDatabase(UserUrl(), "n0where");
  const auto gateways = server::TrainingJobsOf(*sources_, std::nullopt);
  const Status refused = gateways(*cluster_).begin(request, {}).status();
  EXPECT_EQ(refused.sqlstate(), "3D000");
  EXPECT_THAT(refused.ToString(),
              AllOf(HasSubstr("the gateway's own login, which keeps models and jobs, cannot use "
                              "the database that the Secret 'the-secret' names (3D000)"),
                    Not(HasSubstr("n0where")), Not(HasSubstr("is refused"))));
}

}  // namespace
}  // namespace sluice::executor
