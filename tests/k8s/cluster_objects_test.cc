#include "k8s/cluster_objects.h"

#include <gtest/gtest.h>

namespace sluice::k8s {
namespace {

Object ObjectOf(const std::string& json) {
  Result<Object> object = ReadObject(json, "an object");
  EXPECT_TRUE(object.ok()) << object.status().ToString();
  return object.ok() ? *object : Object();
}

TEST(ClusterObjects, ANode) {
  const Result<NodeFacts> node = ReadNode(ObjectOf(R"({
    "metadata": {"name": "n1", "uid": "u", "labels": {"disk": "ssd"}},
    "spec": {"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]},
    "status": {"allocatable": {"cpu": "1500m", "memory": "4Gi", "pods": "110",
                               "nvidia.com/gpu": "2", "example.com/fpga": "3"},
               "conditions": [{"type": "Ready", "status": "True"}]}})"));
  ASSERT_TRUE(node.ok());
  EXPECT_EQ(node->labels, (NodeLabels{"n1", {{"disk", "ssd"}}, {{"gpu", "yes", "NoSchedule"}}}));
  EXPECT_DOUBLE_EQ(node->allocatable.known.cpu, 1.5);
  EXPECT_EQ(node->allocatable.known.memory_bytes, int64_t{4} << 30);
  EXPECT_EQ(node->allocatable.known.gpu, 2);
  EXPECT_EQ(node->allocatable.known.processes, 110);
  EXPECT_EQ(node->allocatable.further.at("example.com/fpga"), 3);
  EXPECT_TRUE(node->ready);
  EXPECT_FALSE(node->cordoned);
}

TEST(ClusterObjects, ANodeThatTakesNothing) {
  EXPECT_TRUE(ReadNode(ObjectOf(R"({"metadata": {"name": "n", "uid": "u"},
      "spec": {"unschedulable": true}})"))
                  ->cordoned);
  EXPECT_FALSE(ReadNode(ObjectOf(R"({"metadata": {"name": "n", "uid": "u"}, "status":
      {"conditions": [{"type": "Ready", "status": "Unknown"}]}})"))
                   ->ready);
}

TEST(ClusterObjects, AbsurdAmountsCountAsNothing) {
  const Result<NodeFacts> node = ReadNode(ObjectOf(R"({"metadata": {"name": "n", "uid": "u"},
      "status": {"allocatable": {"cpu": "-4", "memory": "lots", "pods": {}}}})"));
  EXPECT_EQ(node->allocatable.known.cpu, 0);
  EXPECT_EQ(node->allocatable.known.memory_bytes, 0);
  EXPECT_EQ(node->allocatable.known.processes, 0);
}

TEST(ClusterObjects, APodRequestsWhatItsContainersNeedAtOnce) {
  const Result<PodFacts> pod = ReadPod(ObjectOf(R"({
    "metadata": {"name": "p", "namespace": "ns", "uid": "u",
                 "creationTimestamp": "1970-01-01T00:00:10Z"},
    "spec": {"nodeName": "n1", "priority": 7, "overhead": {"cpu": "100m"},
      "containers": [{"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}},
                     {"resources": {"requests": {"cpu": "500m"}}}],
      "initContainers": [{"restartPolicy": "Always", "resources": {"requests": {"cpu": "200m"}}},
                         {"resources": {"requests": {"cpu": "300m", "memory": "2Gi"}}}]}})"));
  ASSERT_TRUE(pod.ok());
  EXPECT_DOUBLE_EQ(pod->request.known.cpu, 1 + 0.5 + 0.2 + 0.1);
  EXPECT_EQ(pod->request.known.memory_bytes, int64_t{2} << 30) << "of an init container";
  EXPECT_EQ(pod->request.known.processes, 1);
  EXPECT_EQ(pod->node, "n1");
  EXPECT_EQ(pod->priority, 7);
  EXPECT_EQ(pod->created, std::chrono::seconds(10));
  EXPECT_TRUE(pod->job_uid.empty());
}

TEST(ClusterObjects, AnInitContainerBesideTheSidecarsBeforeIt) {
  const Result<PodFacts> pod = ReadPod(ObjectOf(R"({"metadata": {"name": "p", "uid": "u"},
    "spec": {"containers": [{"resources": {"requests": {"cpu": "1"}}}],
      "initContainers": [{"restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}},
                         {"resources": {"requests": {"cpu": "3"}}}]}})"));
  EXPECT_DOUBLE_EQ(pod->request.known.cpu, 4);
}

TEST(ClusterObjects, AQuotaSaysWhatIsLeft) {
  const Result<QuotaFacts> quota = ReadQuota(ObjectOf(R"({
    "metadata": {"name": "q", "namespace": "ns", "uid": "u"}, "spec": {},
    "status": {"hard": {"requests.cpu": "4", "cpu": "6", "count/pods": "10", "limits.cpu": "1"},
               "used": {"requests.cpu": "1500m", "cpu": "1", "count/pods": "12"}}})"));
  EXPECT_EQ(quota->left, (std::map<std::string, double>{{"cpu", 2.5}, {"pods", -2}}));
  EXPECT_TRUE(ReadQuota(ObjectOf(R"({"metadata": {"name": "q", "uid": "u"},
      "spec": {"scopes": ["BestEffort"]}, "status": {"hard": {"pods": "1"}}})"))
                  ->left.empty());
}

}  // namespace
}  // namespace sluice::k8s
