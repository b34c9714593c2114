#include "executor/pods/pod_forecast.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "planner/plan.pb.h"

namespace sluice::executor {
namespace {

class PodForecast : public ::testing::Test {
 protected:
  static k8s::ObjectChange Appeared(const std::string& json) {
    return {k8s::ObjectChange::Kind::kAppeared, k8s::ReadObject(json, "an object").value()};
  }
  void Node(const std::string& name, const char* cpu) {
    view_.OnNode(Appeared(fmt::format(
        R"({{"metadata": {{"name": "{0}", "uid": "{0}", "labels": {{"name": "{0}"}}}},
             "status": {{"allocatable": {{"cpu": "{1}", "memory": "8Gi", "pods": "110"}}}}}})",
        name, cpu)));
  }
  void Service(const std::string& name, const std::string& node, const char* cpu) {
    view_.OnPod(Appeared(fmt::format(
        R"({{"metadata": {{"name": "{0}", "namespace": "web", "uid": "{0}"}},
             "spec": {{"nodeName": "{1}", "containers": [{{"resources": {{"requests":
                       {{"cpu": "{2}"}}}}}}]}}}})",
        name, node, cpu)));
  }
  std::string Start() {
    const auto forecast = ForecastOnPods(plan_, shape_, view_);
    EXPECT_TRUE(forecast.ok()) << forecast.status().ToString();
    return forecast.ok() ? elastic::DescribeStart(*forecast) : "";
  }
  void SetUp() override {
    shape_.namespace_name = "sluice";
    shape_.image = "sluice";
    shape_.priority_class = "sluice-low";
    strategy_.set_kind(plan::Strategy::PARAMETER_SERVER);
    strategy_.set_min_workers(1);
    strategy_.set_max_workers(4);
    strategy_.set_parameter_servers(1);
    strategy_.set_cpu(1);
  }

  k8s::ClusterView view_;
  k8s::PodShape shape_;
  plan::TrainPlan plan_;
  plan::Strategy& strategy_ = *plan_.mutable_strategy();
};

TEST_F(PodForecast, MasterAndServersTakeRoomBesideServices) {
  Node("a", "4");
  Service("web", "a", "500m");
  EXPECT_EQ(Start(), "2 of 4 workers at once; 2 wait: there is no room for more");
  Node("b", "3");
  EXPECT_EQ(Start(), "4 workers at once");
}

TEST_F(PodForecast, TheTemplateAndTheStatementSayWhatAWorkerNeeds) {
  Node("a", "8");
  Node("b", "8");
  shape_.template_json = R"({"spec": {"nodeSelector": {"name": "b"}, "containers": [
      {"name": "proxy", "resources": {"requests": {"cpu": "1"}}}]}})";
  // On b: a master of 1.1, a server and workers of 2 each.
  EXPECT_EQ(Start(), "2 of 4 workers at once; 2 wait: there is no room for more");
  plan::PodResource& memory = *strategy_.mutable_pods()->mutable_workers()->add_requests();
  memory.set_name("memory");
  memory.set_amount("5Gi");
  EXPECT_EQ(Start(), "1 of 4 workers at once; 3 wait: there is no room for more");
}

TEST_F(PodForecast, AQuotaCounts) {
  Node("a", "8");
  view_.OnQuota(Appeared(R"({"metadata": {"name": "q", "namespace": "sluice", "uid": "q"},
      "status": {"hard": {"requests.cpu": "2"}, "used": {"requests.cpu": "0"}}})"));
  EXPECT_EQ(Start(), "2 of 4 workers at once; 2 wait: a ResourceQuota allows no more");
}

TEST_F(PodForecast, ATemplateThatIsNoneIsAnError) {
  shape_.template_json = "[]";
  EXPECT_FALSE(ForecastOnPods(plan_, shape_, view_).ok());
}

}  // namespace
}  // namespace sluice::executor
