#include "k8s/node_rules.h"

#include <gtest/gtest.h>

namespace sluice::k8s {
namespace {

bool Admits(const std::string& spec, const NodeLabels& node) {
  const Result<NodeRules> rules = NodeRules::Of(R"({"spec":)" + spec + "}");
  EXPECT_TRUE(rules.ok()) << rules.status().ToString();
  return rules.ok() && rules->Admits(node);
}

std::string Affinity(const std::string& terms) {
  return R"({"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":)"
         R"({"nodeSelectorTerms":[)" +
         terms + "]}}}}";
}

const NodeLabels kFast = {"n1", {{"disk", "ssd"}, {"cores", "16"}}, {}};
const NodeLabels kSlow = {"n2", {{"disk", "hdd"}}, {}};

TEST(NodeRules, APodWithoutRulesRunsAnywhereButOnTaintedNodes) {
  EXPECT_TRUE(Admits("{}", kFast));
  EXPECT_FALSE(Admits("{}", {"n", {}, {{"gpu", "yes", "NoSchedule"}}}));
  EXPECT_FALSE(Admits("{}", {"n", {}, {{"gpu", "yes", "NoExecute"}}}));
  EXPECT_TRUE(Admits("{}", {"n", {}, {{"gpu", "yes", "PreferNoSchedule"}}}));
}

TEST(NodeRules, Selector) {
  EXPECT_TRUE(Admits(R"({"nodeSelector":{"disk":"ssd"}})", kFast));
  EXPECT_FALSE(Admits(R"({"nodeSelector":{"disk":"ssd"}})", kSlow));
  EXPECT_FALSE(Admits(R"({"nodeSelector":{"disk":"ssd","zone":"a"}})", kFast));
}

TEST(NodeRules, EachOperatorOfAnAffinity) {
  const auto on = [](const std::string& expression, const NodeLabels& node) {
    return Admits(Affinity(R"({"matchExpressions":[)" + expression + "]}"), node);
  };
  EXPECT_TRUE(on(R"({"key":"disk","operator":"In","values":["ssd","nvme"]})", kFast));
  EXPECT_FALSE(on(R"({"key":"disk","operator":"In","values":["nvme"]})", kFast));
  EXPECT_TRUE(on(R"({"key":"disk","operator":"NotIn","values":["hdd"]})", kFast));
  EXPECT_FALSE(on(R"({"key":"disk","operator":"NotIn","values":["hdd"]})", kSlow));
  EXPECT_TRUE(on(R"({"key":"zone","operator":"NotIn","values":["a"]})", kSlow));
  EXPECT_TRUE(on(R"({"key":"cores","operator":"Exists"})", kFast));
  EXPECT_FALSE(on(R"({"key":"cores","operator":"Exists"})", kSlow));
  EXPECT_TRUE(on(R"({"key":"cores","operator":"DoesNotExist"})", kSlow));
  EXPECT_TRUE(on(R"({"key":"cores","operator":"Gt","values":["8"]})", kFast));
  EXPECT_FALSE(on(R"({"key":"cores","operator":"Gt","values":["16"]})", kFast));
  EXPECT_TRUE(on(R"({"key":"cores","operator":"Lt","values":["17"]})", kFast));
  EXPECT_FALSE(on(R"({"key":"disk","operator":"Lt","values":["17"]})", kFast)) << "no number";
  EXPECT_FALSE(on(R"({"key":"disk","operator":"Like","values":["ssd"]})", kFast)) << "unknown";
}

TEST(NodeRules, OneTermHasToHoldAsAWhole) {
  const std::string ssd =
      R"({"matchExpressions":[{"key":"disk","operator":"In","values":["ssd"]}]})";
  const std::string n2 =
      R"({"matchFields":[{"key":"metadata.name","operator":"In","values":["n2"]}]})";
  EXPECT_TRUE(Admits(Affinity(ssd + "," + n2), kSlow));
  EXPECT_TRUE(Admits(Affinity(ssd + "," + n2), kFast));
  EXPECT_FALSE(Admits(Affinity(n2), kFast));
  EXPECT_FALSE(Admits(Affinity("{}"), kFast)) << "an empty term selects nothing";
}

TEST(NodeRules, Tolerations) {
  const NodeLabels tainted = {"n", {}, {{"gpu", "yes", "NoSchedule"}}};
  const auto with = [&](const std::string& toleration) {
    return Admits(R"({"tolerations":[)" + toleration + "]}", tainted);
  };
  EXPECT_TRUE(with(R"({"key":"gpu","value":"yes","effect":"NoSchedule"})"));
  EXPECT_TRUE(with(R"({"key":"gpu","operator":"Exists"})"));
  EXPECT_TRUE(with(R"({"operator":"Exists"})"));
  EXPECT_FALSE(with(R"({"key":"gpu","value":"no"})"));
  EXPECT_FALSE(with(R"({"key":"gpu","operator":"Exists","effect":"NoExecute"})"));
  EXPECT_FALSE(with(R"({"key":"disk","operator":"Exists"})"));
}

TEST(NodeRules, WhatDependsOnMoreThanTheNodeIsKnown) {
  const auto further = [](const std::string& spec) {
    return NodeRules::Of(R"({"spec":)" + spec + "}")->HasFurtherRules();
  };
  EXPECT_FALSE(further("{}"));
  EXPECT_FALSE(further(R"({"volumes":[{"name":"v","emptyDir":{}}]})"));
  EXPECT_TRUE(further(R"({"volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"c"}}]})"));
  EXPECT_TRUE(further(R"({"containers":[{"ports":[{"hostPort":80}]}]})"));
  EXPECT_TRUE(further(R"({"topologySpreadConstraints":[{"whenUnsatisfiable":"DoNotSchedule"}]})"));
  EXPECT_FALSE(
      further(R"({"topologySpreadConstraints":[{"whenUnsatisfiable":"ScheduleAnyway"}]})"));
  EXPECT_TRUE(further(R"({"affinity":{"podAntiAffinity":{
      "requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"host"}]}}})"));
}

}  // namespace
}  // namespace sluice::k8s
