#include "k8s/cluster_listing.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "elastic/fleet/forecast.h"
#include "k8s/api_verbs.h"
#include "tests/k8s/tested_api_server.h"

namespace sluice::k8s {
namespace {

using Trouble = FakeApiServer::Trouble;

class ClusterListing : public testing::Test {
 protected:
  void Create(const Resource& resource, const std::string& where, const std::string& json) {
    const auto made = CreateAll(server_.client(), {{resource, where, json}}, {});
    ASSERT_TRUE(made[0].ok()) << made[0].status.ToString();
  }
  void Node(const std::string& name, const std::string& spec, const std::string& ready) {
    Create(kNodes, "",
           fmt::format(R"({{"metadata": {{"name": "{}"}}, "spec": {}, "status": {{"conditions":
               [{{"type": "Ready", "status": "{}"}}],
               "allocatable": {{"cpu": "4", "memory": "8Gi", "pods": "110"}}}}}})",
                       name, spec, ready));
  }
  void Pod(const std::string& where, const std::string& name, const std::string& node,
           const std::string& labels, const std::string& cpu) {
    Create(kPods, where,
           fmt::format(R"({{"metadata": {{"name": "{}", "labels": {}}}, "spec": {{"nodeName": "{}",
               "containers": [{{"name": "c", "image": "i", "resources": {{"requests":
               {{"cpu": "{}", "memory": "1Gi"}}}}}}]}}}})",
                       name, labels, node, cpu));
  }

  TestedApiServer server_{false};
};

TEST_F(ClusterListing, SaysWhoUsesWhatOfEachNode) {
  Node("n1", "{}", "True");
  Node("n2", R"({"unschedulable": true})", "Unknown");
  const std::string& ns = server_.namespace_name();
  Create(kTrainingJobs, ns,
         R"({"apiVersion": "training.sluice/v1alpha1", "kind": "TrainingJob",
             "metadata": {"name": "j", "labels": {"training.sluice/job": "u"}},
             "spec": {"statement": "SELECT 1", "source": {"secretName": "s"}}})");
  Pod(ns, "w", "n1",
      R"({"training.sluice/job": "u", "training.sluice/role": "worker",
          "training.sluice/incarnation": "1"})",
      "1500m");
  Pod("elsewhere", "web", "n1", R"({"app": "web"})", "1");
  Pod("elsewhere", "batch", "n2", "{}", "3");
  const Result<ClusterView> view = ListCluster(server_.client(), {});
  ASSERT_TRUE(view.ok()) << view.status().ToString();
  const auto uses = elastic::UseOfNodes(view->Make().state);
  ASSERT_EQ(uses.size(), 2U);
  EXPECT_EQ(uses[0].node, "n1");
  EXPECT_FALSE(uses[0].suspect || uses[0].cordoned);
  EXPECT_EQ(uses[0].jobs.cpu, 1.5);
  EXPECT_EQ(uses[0].services.cpu, 1);
  EXPECT_EQ(uses[0].free.cpu, 1.5);
  EXPECT_EQ(uses[0].jobs.memory_bytes, int64_t{1} << 30);
  EXPECT_EQ(uses[0].free.memory_bytes, int64_t{6} << 30);
  EXPECT_EQ(uses[0].processes, 1U);
  EXPECT_TRUE(uses[1].suspect && uses[1].cordoned);
  EXPECT_EQ(uses[1].services.cpu, 3);
  EXPECT_EQ(uses[1].processes, 0U);
}

TEST_F(ClusterListing, NamesEveryRightThatIsMissing) {
  server_.fake().Make(Trouble::kForbidden, "list", "nodes", 1);
  server_.fake().Make(Trouble::kForbidden, "list", "pods", 1);
  const Status status = ListCluster(server_.client(), {}).status();
  EXPECT_EQ(status.code(), Code::kPermissionDenied);
  EXPECT_EQ(status.message(), "rights are missing in the whole cluster: list nodes, list pods");
  EXPECT_TRUE(ListCluster(server_.client(), {}).ok());
}

}  // namespace
}  // namespace sluice::k8s
