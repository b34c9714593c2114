#include "executor/pods/requested_pods.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace sluice::executor
