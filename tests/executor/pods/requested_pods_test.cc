#include "executor/pods/requested_pods.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>

#include "planner/plan.pb.h"

namespace sluice::executor {
namespace {

TEST(RequestedPods, TheObjectOfAStatementsJobSaysWhatItsPodsRequest) {
  plan::Strategy strategy;
  strategy.set_cpu(1.5);
  plan::RolePods& workers = *strategy.mutable_pods()->mutable_workers();
  workers.set_high_share(0.5);
  plan::PodResource& processors = *workers.add_requests();
  processors.set_name("cpu");
  processors.set_amount("4");
  plan::PodResource& memory = *workers.add_limits();
  memory.set_name("memory");
  memory.set_amount("2Gi");
  plan::PodResource& gpus = *workers.add_limits();
  gpus.set_name("nvidia.com/gpu");
  gpus.set_amount("1");
  const Result<k8s::PodRequest> request = RequestedPods(strategy.pods(), 2, 1);
  ASSERT_TRUE(request.ok()) << request.status().ToString();
  k8s::TrainingJobSpec spec;
  spec.statement = "SELECT 1";
  spec.source_secret = "s";
  DescribeRequests(*request, strategy, spec);
  const Result<k8s::TrainingJobSpec> read =
      k8s::ParseTrainingJobSpec(k8s::BuildTrainingJob("ns", "a", spec));
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  const auto requested = [](const k8s::ProcessesSpec& processes, const char* name) {
    return processes.resources.requests.at(name).AsDouble();
  };
  EXPECT_EQ(requested(read->workers, "cpu"), 4);
  EXPECT_EQ(requested(read->workers, "nvidia.com/gpu"), 1);
  EXPECT_EQ(requested(read->servers, "cpu"), 1.5);
  EXPECT_EQ(requested(read->master, "cpu"), 0.1);
  EXPECT_TRUE(read->workers.priority.given);
  EXPECT_EQ(read->workers.priority.high_share, 0.5);
  EXPECT_FALSE(read->servers.priority.given);
}

plan::TrainPlan Estimated() {
  plan::TrainPlan plan;
  plan.mutable_strategy()->set_kind(plan::Strategy::PARAMETER_SERVER);
  plan.mutable_strategy()->set_parameter_servers(2);
  plan.set_estimated_memory_bytes(int64_t{96} << 20);
  plan.set_estimated_server_memory_bytes(int64_t{32} << 20);
  return plan;
}

std::string MemoryOf(const plan::TrainPlan& plan, elastic::Role role, double factor = 1,
                     std::string_view pod_template = {}) {
  const Result<k8s::PodRequest> request = RequestedPods(plan, pod_template);
  EXPECT_TRUE(request.ok()) << request.status().ToString();
  const elastic::Resources given{
      1, static_cast<int64_t>(static_cast<double>(plan.strategy().memory_bytes()) * factor),
      factor};
  const k8s::PodResources resources = k8s::ResourcesOf(request->Of(role), given);
  const auto memory = [](const std::map<std::string, k8s::Quantity>& amounts) {
    const auto found = amounts.find("memory");
    return found == amounts.end() ? std::string("none") : found->second.ToString();
  };
  return memory(resources.requests) + " of " + memory(resources.limits);
}

TEST(RequestedPods, MemoryIsThePlansEstimateWithRoom) {
  plan::TrainPlan plan = Estimated();
  EXPECT_EQ(MemoryOf(plan, elastic::Role::kWorker), "152Mi of 304Mi");
  EXPECT_EQ(MemoryOf(plan, elastic::Role::kParameterServer), "72Mi of 144Mi");
  EXPECT_EQ(MemoryOf(plan, elastic::Role::kMaster), "192Mi of 384Mi");
  plan.set_estimated_kept_bytes(int64_t{8} << 20);
  EXPECT_EQ(MemoryOf(plan, elastic::Role::kWorker), "152Mi of 560Mi")
      << "it keeps the rows of workers that are lost";
  plan.mutable_strategy()->set_parameter_servers(5);
  EXPECT_EQ(MemoryOf(plan, elastic::Role::kParameterServer), "72Mi of 360Mi")
      << "the last server has what all had";
  EXPECT_EQ(MemoryOf(plan::TrainPlan(), elastic::Role::kWorker), "none of none");
}

// No statement says how much memory, so what is multiplied is the estimate.
TEST(RequestedPods, AnEstimateGrowsAfterAnEndForLackOfMemory) {
  EXPECT_EQ(MemoryOf(Estimated(), elastic::Role::kWorker, 1.5), "228Mi of 456Mi");
}

TEST(RequestedPods, WhatTheStatementOrTheTemplateSaysOfMemoryCounts) {
  plan::TrainPlan plan = Estimated();
  const char* const given =
      R"({"spec":{"containers":[{"name":"sluice","resources":{"limits":{"memory":"1Gi"}}}]}})";
  EXPECT_EQ(MemoryOf(plan, elastic::Role::kWorker, 1, given), "none of none") << "the template's";
  plan::PodResource& limit =
      *plan.mutable_strategy()->mutable_pods()->mutable_workers()->add_limits();
  limit.set_name("memory");
  limit.set_amount("2Gi");
  EXPECT_EQ(MemoryOf(plan, elastic::Role::kWorker), "none of 2Gi");
  EXPECT_EQ(MemoryOf(plan, elastic::Role::kWorker, 1.5), "none of 3Gi");
  EXPECT_EQ(MemoryOf(plan, elastic::Role::kParameterServer), "72Mi of 144Mi") << "others' memory";
  plan.mutable_strategy()->set_memory_bytes(int64_t{1} << 30);
  EXPECT_EQ(MemoryOf(plan, elastic::Role::kWorker, 1.5), "1536Mi of 3Gi");
  EXPECT_EQ(MemoryOf(plan, elastic::Role::kParameterServer), "1Gi of 1Gi");
}

TEST(RequestedPods, TheObjectOfAJobSaysItsMemory) {
  const plan::TrainPlan plan = Estimated();
  k8s::TrainingJobSpec spec;
  DescribeRequests(RequestedPods(plan, "").value(), plan.strategy(), spec);
  EXPECT_EQ(spec.workers.resources.requests.at("memory").ToString(), "152Mi");
  EXPECT_EQ(spec.master.resources.requests.at("memory").ToString(), "192Mi");
}

}  // namespace
}  // namespace sluice::executor
