// The requests of engine.* for pods: they go into the plan, or are errors at the wrong part of the
// text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "planner/plan.pb.h"
#include "planner/planner.h"
#include "tests/planner/plan_of.h"

namespace sluice::planner {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class PodAttributesTest : public ::testing::Test {
 protected:
  PodAttributesTest() { source_.tables["t"] = SmallCensus(400); }

  Result<plan::Plan> Plan(const std::string& with, bool on_pods = true,
                          const std::string& workers = "engine.num_workers=2, ") {
    script_ = "SELECT * FROM t TO TRAIN DNNClassifier WITH model.hidden_units=[4], " + workers +
              with + " LABEL income INTO m";
    Options options;
    options.pods = on_pods;
    options.pods_allowed = allowed_;
    options.checkpoint_root = checkpoint_root_;
    return PlanOf(script_, source_, options);
  }
  plan::Pods Pods(const std::string& with) {
    const Result<plan::Plan> plan = Plan(with);
    EXPECT_TRUE(plan.ok()) << plan.status().ToString();
    return plan.ok() ? plan->train().strategy().pods() : plan::Pods();
  }
  // "message @place [hint]" of every error.
  std::vector<std::string> Errors(const std::string& with, bool on_pods = true) {
    const Result<plan::Plan> plan = Plan(with, on_pods);
    std::vector<std::string> errors;
    for (const Diagnostic& error : plan.status().diagnostics()) {
      const std::string place =
          error.span.valid()
              ? script_.substr(static_cast<size_t>(error.span.begin),
                               static_cast<size_t>(error.span.end - error.span.begin))
              : "nowhere";
      errors.push_back(error.message + " @" + place +
                       (error.hint.empty() ? "" : " [" + error.hint + "]"));
    }
    return errors;
  }
  static std::string Text(const google::protobuf::RepeatedPtrField<plan::PodResource>& resources) {
    std::string text;
    for (const plan::PodResource& each : resources) {
      text += (text.empty() ? "" : " ") + each.name() + "=" + each.amount();
    }
    return text;
  }

  std::optional<PodsAllowed> allowed_;
  std::optional<std::string> checkpoint_root_;
  FakeSource source_;
  std::string script_;
};

TEST_F(PodAttributesTest, WithoutThemThePlanSaysNothingOfPods) {
  EXPECT_FALSE(Plan("engine.priority=1")->train().strategy().has_pods());
  EXPECT_FALSE(Plan("engine.priority=1", false)->train().strategy().has_pods());
}

// A pod may go at any time, and one server has the only copy of its parameters.
TEST_F(PodAttributesTest, ThereAreTwoServersUnlessTheStatementSaysOtherwise) {
  const auto servers = [this](const std::string& with, bool on_pods = true) {
    const Result<plan::Plan> plan = Plan(with, on_pods);
    EXPECT_TRUE(plan.ok()) << plan.status().ToString();
    const plan::Strategy& strategy = plan->train().strategy();
    return std::pair(strategy.parameter_servers(), strategy.replicas());
  };
  EXPECT_EQ(servers("engine.priority=1"), std::pair(2U, 1U));
  EXPECT_EQ(servers("engine.priority=1", false), std::pair(1U, 0U)) << "processes of this machine";
  EXPECT_EQ(servers("engine.num_ps=1"), std::pair(1U, 0U));
  EXPECT_EQ(servers("engine.max_ps=1"), std::pair(1U, 0U));
  EXPECT_EQ(servers("engine.replicas=0"), std::pair(1U, 0U));
  EXPECT_EQ(servers("engine.max_ps=3"), std::pair(2U, 1U));
}

TEST_F(PodAttributesTest, EverythingIsInThePlan) {
  const plan::Pods pods = Pods(
      "engine.template='spot', engine.image_pull_policy=never, "
      "engine.volume='claim_name=c,mount_path=/c; claim_name=d, mount_path=/d, sub_path=s, "
      "read_only=true', engine.worker_resource_request='cpu=500m, memory=2Gi,gpu=1', "
      "engine.worker_resource_limit='cpu=1', engine.worker_pod_priority=0.5, "
      "engine.ps_resource_request='memory=1Gi,disk=5G', engine.ps_pod_priority='high', "
      "engine.master_resource_limit='example.com/tpu=2', engine.master_pod_priority='low'");
  EXPECT_EQ(pods.template_name(), "spot");
  EXPECT_EQ(pods.image_pull_policy(), "Never");
  ASSERT_EQ(pods.volumes_size(), 2);
  EXPECT_EQ(pods.volumes(0).claim(), "c");
  EXPECT_EQ(pods.volumes(0).mount_path(), "/c");
  EXPECT_FALSE(pods.volumes(0).read_only());
  EXPECT_EQ(pods.volumes(1).sub_path(), "s");
  EXPECT_TRUE(pods.volumes(1).read_only());
  EXPECT_EQ(Text(pods.workers().requests()), "cpu=500m memory=2Gi nvidia.com/gpu=1");
  EXPECT_EQ(Text(pods.workers().limits()), "cpu=1");
  EXPECT_EQ(pods.workers().high_share(), 0.5);
  EXPECT_EQ(Text(pods.servers().requests()), "ephemeral-storage=5G memory=1Gi");
  EXPECT_EQ(pods.servers().high_share(), 1);
  EXPECT_EQ(Text(pods.master().limits()), "example.com/tpu=2");
  EXPECT_TRUE(pods.master().has_high_share());
  EXPECT_EQ(pods.master().high_share(), 0);
}

TEST_F(PodAttributesTest, AWorkersRequestIsWhatTheSchedulerOfJobsReckonsWith) {
  const Result<plan::Plan> plan = Plan("engine.worker_resource_request='cpu=1500m,memory=3Gi'");
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_EQ(plan->train().strategy().cpu(), 1.5);
  EXPECT_EQ(plan->train().strategy().memory_bytes(), int64_t{3} << 30);
  EXPECT_THAT(Errors("engine.cpu=2, engine.worker_resource_request='cpu=1'"),
              ElementsAre("engine.cpu and cpu of engine.worker_resource_request are the same "
                          "thing, given twice @2"));
}

// What only the operator's list keeps one role from: another team's claim, other checkpoints.
TEST_F(PodAttributesTest, AGatewayMountsWhatItsOperatorLists) {
  allowed_ = PodsAllowed();
  EXPECT_THAT(
      Errors("engine.template='spot', engine.volume='claim_name=c,mount_path=/c'"),
      ElementsAre(HasSubstr("the PodTemplate 'spot' is not one that statements may use here "
                            "@spot [none is: the operator lists them"),
                  HasSubstr("'c' is not a claim that statements may mount here "
                            "@claim_name=c,mount_path=/c [none is: the operator")));
  allowed_ = PodsAllowed::Read("template=spot, claim=c:/c, claim=d:/d:teams/a").value();
  EXPECT_THAT(Errors("engine.template='spot', engine.volume='claim_name=c,mount_path=/c,sub_path=s;"
                     "claim_name=d,mount_path=/d,sub_path=teams/a/b'"),
              IsEmpty());
  const std::pair<const char*, const char*> cases[] = {
      {"engine.template='on_demand'",
       "'on_demand' is not one that statements may use here "
       "@on_demand [one of: spot"},
      {"engine.volume='claim_name=e,mount_path=/e'", "[one of: c, d"},
      {"engine.volume='claim_name=c,mount_path=/c/bob'", "'c' is mounted at /c, not at /c/bob"},
      {"engine.volume='claim_name=d,mount_path=/d'",
       "statements may mount teams/a, or a folder in "
       "it"},
      {"engine.volume='claim_name=d,mount_path=/d,sub_path=teams/ab'", "may mount teams/a"},
  };
  for (const auto& [with, error] : cases) {
    EXPECT_THAT(Errors(with), ElementsAre(HasSubstr(error))) << with;
  }
  checkpoint_root_ = "/c/checkpoints";
  EXPECT_THAT(Errors("engine.volume='claim_name=c,mount_path=/c'"), IsEmpty());
  EXPECT_THAT(Errors("engine.volume='claim_name=c,mount_path=/c,sub_path=checkpoints'"),
              ElementsAre(HasSubstr("'c' holds checkpoints, which have one root")));
}

TEST(PodsAllowedTest, AWrongListIsNamed) {
  for (const char* const wrong :
       {"claim=c", "claim=c:c", "claim=c:/c:../d", "claim=c:/etc", "claim=:/c", "template=", "c",
        "claim=c:/c:d:e", "host_path=/c", "claim=c:/c:"}) {
    const Result<PodsAllowed> read = PodsAllowed::Read(wrong);
    ASSERT_FALSE(read.ok()) << wrong;
    EXPECT_THAT(read.status().ToString(), HasSubstr(std::string("'") + wrong + "'"));
  }
  EXPECT_TRUE(PodsAllowed::Read("").value().claims.empty());
}

TEST_F(PodAttributesTest, AMistakeIsToldAtItsPlace) {
  const struct {
    const char* with;
    const char* error;
  } cases[] = {
      {"engine.worker_resource_request='cpu=1,memory=4GB'",
       "4GB' is not a Kubernetes quantity @4GB ["},
      {"engine.worker_resource_request='cpus=1'",
       "engine.worker_resource_request: unknown resource 'cpus' @cpus [cpu, memory, gpu"},
      {"engine.worker_resource_request='cpu'", "'cpu' is not written as name=value @cpu"},
      {"engine.worker_resource_request='cpu=1,,memory=1Gi'", "'' is not written as name=value @"},
      {"engine.worker_resource_request='cpu=1, cpu=2'", "cpu is given twice @cpu=2"},
      {"engine.ps_resource_request='memory=0'",
       "engine.ps_resource_request: memory must be more than nothing, not 0 @0"},
      {"engine.ps_resource_request='memory=-1Gi'",
       "memory must be more than nothing, not -1Gi @-1Gi"},
      {"engine.ps_resource_request='memory=2Gi', engine.ps_resource_limit='memory=1Gi'",
       "engine.ps_resource_limit: 1Gi of memory is less than engine.ps_resource_request asks for, "
       "2Gi @memory=1Gi"},
      {"engine.worker_pod_priority='urgent'",
       "engine.worker_pod_priority: 'urgent' is no priority @urgent ['high', 'low', or the share"},
      {"engine.worker_pod_priority=1.5", "engine.worker_pod_priority: '1.5' is no priority @1.5"},
      {"engine.worker_pod_priority='nan'", "'nan' is no priority @nan"},
      {"engine.volume='claim_name=c'", "engine.volume: a volume needs a mount_path @claim_name=c"},
      {"engine.volume='mount_path=/c'",
       "engine.volume: a volume needs a claim_name @mount_path=/c"},
      {"engine.volume='claim_name=c,mount_path=c'", "engine.volume: 'c' does not begin with / @c"},
      {"engine.volume='claim_name=c,mount_path=/c,kind=nfs'",
       "engine.volume: unknown setting 'kind=nfs' @kind=nfs [claim_name, mount_path"},
      {"engine.volume='claim_name=c,mount_path=/c;host_path=/etc,mount_path=/e'",
       "engine.volume: a statement cannot have a folder of a node @host_path=/etc [a claim_name"},
      {"engine.image_pull_policy='sometimes'", "must be one of Always, IfNotPresent, Never"},
      {"engine.volume='claim_name=c,mount_path=/c/../etc'",
       "engine.volume: a volume cannot be at '/c/../etc' @/c/../etc"},
      {"engine.volume='claim_name=c,mount_path=/var/run/secrets/kubernetes.io/serviceaccount'",
       "engine.volume: a volume cannot be at '/var/run/secrets"},
      {"engine.volume='claim_name=c,mount_path=/'", "engine.volume: a volume cannot be at '/' @/"},
      {"engine.volume='claim_name=c,mount_path=/c,sub_path=../d'",
       "engine.volume: '../d' is no path in a volume @../d"},
      {"engine.volume='claim_name=c,mount_path=/c,sub_path=/d'",
       "engine.volume: '/d' is no path in a volume @/d"},
      {"engine.template=7", "attribute engine.template must be"},
  };
  for (const auto& each : cases) {
    EXPECT_THAT(Errors(each.with), ElementsAre(HasSubstr(each.error))) << each.with;
  }
}

TEST_F(PodAttributesTest, AllMistakesAreToldAtOnce) {
  EXPECT_THAT(Errors("engine.min_workers=3, engine.max_workers=2, engine.volume='mount_path=/c', "
                     "engine.worker_resource_request='memory=4GB,cpus=1'"),
              ElementsAre(HasSubstr("engine.max_workers is 2, less than engine.min_workers, 3"),
                          HasSubstr("a volume needs a claim_name"), HasSubstr("4GB"),
                          HasSubstr("unknown resource 'cpus'")));
}

TEST_F(PodAttributesTest, WithoutPodsTheyAreRefused) {
  EXPECT_THAT(
      Errors("engine.template='spot', engine.worker_pod_priority='high'", false),
      ElementsAre(
          "engine.template is about pods, and jobs do not run on pods here @'spot' [leave it out; "
          "engine.cpu and engine.memory say what a worker takes]",
          HasSubstr("engine.worker_pod_priority is about pods")));
  EXPECT_THAT(Errors("engine.template=null", false), IsEmpty());
}

TEST_F(PodAttributesTest, ATrainingInOneProcessSaysThatTheyDoNothing) {
  const Result<plan::Plan> plan = Plan("engine.template='spot'", true, "");
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_THAT(plan->train().without_effect(), ElementsAre(HasSubstr("engine.template: no effect")));
}

}  // namespace
}  // namespace sluice::planner
