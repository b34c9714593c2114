#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "tests/process/pods_fixture.h"

// How the pods of a job are created and get places.
namespace sluice::executor {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Three places, with workers first in the scheduler's queue: two servers, one worker.
TEST_F(Pods, ServersAreGivenPlacesBeforeWorkers) {
  StartCluster({SLUICE_BINARY, 3, 0.75, true});
  RecordingSink sink;
  const Status status = Train("m",
                              "train.epoch=4, engine.seed=5, engine.num_workers=2, "
                              "engine.max_workers=2, engine.num_ps=2, engine.cpu=0.6, "
                              "engine.sync=true",
                              sink);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(kubelet_->Started("ps").size(), 2U);
  EXPECT_EQ(catalog_->jobs().Find(1)->rows_trained, 4 * kRowsTrained);
  ExpectNothingLeft();
}

// The client gets a notice about pods without a place.
TEST_F(Pods, WhoHasNoPlaceSaysWhy) {
  StartCluster({SLUICE_BINARY, 2, 0.75});
  kubelet_->Occupy("node-1", 0.6);
  RecordingSink sink;
  sink.on_notice = [this](const std::string& notice) {
    if (notice.find(" waits: ") != std::string::npos) {
      EXPECT_TRUE(catalog_->jobs().RequestCancel(1).ok());
    }
  };
  const Status status = Train("m", "engine.num_workers=1, engine.num_ps=2, engine.cpu=0.6", sink);
  EXPECT_EQ(status.code(), Code::kCancelled) << status.ToString();
  EXPECT_THAT(sink.notices,
              ::testing::Contains(HasSubstr("waits: Unschedulable: 0/2 nodes are available: 2 "
                                            "Insufficient cpu.")));
  EXPECT_GE(Count(1, "pod_waits"), 1);
  EXPECT_THAT(kubelet_->Started("worker"), IsEmpty());
  ExpectNothingLeft();
}

// Before there is a master that could say so.
TEST_F(Pods, WhoseMasterHasNoPlaceSaysWhy) {
  const auto quota =
      k8s::CreateAll(kubelet_->client(),
                     {{{"", "v1", "resourcequotas"},
                       kubelet_->namespace_name(),
                       R"({"metadata":{"name":"q"},"status":{"hard":{"pods":"0"}}})"}},
                     {});
  ASSERT_TRUE(quota.at(0).ok()) << quota.at(0).status.ToString();
  std::string told;
  RecordingSink sink;
  sink.on_notice = [&](const std::string& notice) {
    if (notice.find("the job's master waits: QuotaExceeded") != std::string::npos) {
      told = ConditionsOf(OnlyTrainingJob());
      EXPECT_TRUE(catalog_->jobs().RequestCancel(1).ok());
      k8s::DeleteAll(kubelet_->client(),
                     {{{"", "v1", "resourcequotas"}, kubelet_->namespace_name(), "q", "", 1}}, {});
    }
  };
  const Status status = Train("m", "engine.num_workers=1, engine.num_ps=1", sink);
  EXPECT_EQ(status.code(), Code::kCancelled) << status.ToString();
  EXPECT_THAT(told, HasSubstr("Queued True QuotaExceeded"));
  EXPECT_GE(Reasons()["QuotaExceeded"], 1);
  ExpectNothingLeft();
}

// A server is lost, and something else takes its place.
TEST_F(Pods, AWorkerGivesWayToAServer) {
  StartCluster({SLUICE_BINARY, 4, 0.75});
  RecordingSink sink;
  Status status;
  {
    const std::jthread node([&](const std::stop_token& stop) {
      EXPECT_TRUE(Eventually([&] { return stop.stop_requested() || Count(1, "epoch_done") >= 1; }));
      const std::vector<std::string> servers = kubelet_->Running("ps");
      if (!servers.empty()) {
        kubelet_->Occupy(kubelet_->NodeOf(servers[0]), 0.6);
        kubelet_->Kill(servers[0]);
      }
      EXPECT_TRUE(
          Eventually([&] { return stop.stop_requested() || Count(1, "servers_placed") >= 1; }));
      EXPECT_TRUE(catalog_->jobs().RequestCancel(1).ok());
    });
    status = Train("m",
                   "train.epoch=100000, engine.num_workers=2, engine.max_workers=2, "
                   "engine.num_ps=2, engine.replicas=1, engine.cpu=0.6",
                   sink);
  }
  EXPECT_EQ(status.code(), Code::kCancelled) << status.ToString();
  EXPECT_EQ(Count(1, "workers_give_way"), 1) << ::testing::PrintToString(Events(1));
  EXPECT_EQ(Count(1, "servers_placed"), 1) << ::testing::PrintToString(Events(1));
  // A master that begins another run before the cancel is in the row has servers of its own.
  const std::vector<std::string> servers = kubelet_->Started("ps");
  const std::string of_first_run = servers.at(0).substr(0, servers.at(0).rfind("-ps-") + 4);
  EXPECT_EQ(std::count_if(servers.begin(), servers.end(),
                          [&](const auto& server) { return server.starts_with(of_first_run); }),
            3);
  ExpectNothingLeft();
}

TEST_F(Pods, PodsAreMadeAsTheStatementSays) {
  const std::string& where = kubelet_->namespace_name();
  const auto made = k8s::CreateAll(
      kubelet_->client(),
      {{k8s::kPodTemplates, where,
        R"({"apiVersion":"v1","kind":"PodTemplate","metadata":{"name":"spot"},"template":{)"
        R"("metadata":{"labels":{"team":"a"}},"spec":{}}})"}},
      {});
  ASSERT_TRUE(made.at(0).ok()) << made.at(0).status.ToString();
  RecordingSink sink;
  std::map<std::string, std::string> by_role;
  sink.on_progress = [&] {
    for (const k8s::Object& pod :
         k8s::ListObjects(kubelet_->client(), {k8s::kPods, where, "team=a"}, {}).objects) {
      by_role[pod.labels.at(std::string(k8s::kRoleLabel))] = pod.json;
    }
  };
  const Status status =
      Train("m",
            "train.epoch=300, engine.num_workers=2, engine.num_ps=1, "
            "engine.template='spot', engine.image_pull_policy='Never', "
            "engine.master_resource_request='cpu=150m', "
            "engine.worker_resource_request='cpu=350m', "
            "engine.ps_resource_request='cpu=250m', engine.ps_pod_priority='high'",
            sink);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_THAT(by_role["master"], HasSubstr(R"("cpu":"150m")"));
  EXPECT_THAT(by_role["worker"], HasSubstr(R"("cpu":"350m")"));
  EXPECT_THAT(by_role["ps"], HasSubstr(R"("cpu":"250m")"));
  EXPECT_THAT(by_role["ps"], HasSubstr(R"("priorityClassName":"sluice-high")"));
  EXPECT_THAT(by_role["worker"], HasSubstr(R"("imagePullPolicy":"Never")"));
}

TEST_F(Pods, AJobSaysWhatMemoryItsPodsWantAndHaveUsed) {
  RecordingSink sink;
  const Status status = Train("m", kSynchronous, sink);
  ASSERT_TRUE(status.ok()) << status.ToString();
  std::map<std::string, double> used;
  for (const catalog::JobMetric& metric : catalog_->jobs().Metrics(1).value()) {
    used[metric.name] = std::max(used[metric.name], metric.value);
  }
  const k8s::ObjectAnswer object = k8s::GetObject(
      kubelet_->client(), k8s::kTrainingJobs, kubelet_->namespace_name(), OnlyTrainingJob(), {});
  const k8s::TrainingJobSpec spec = k8s::ParseTrainingJobSpec(object.object.json).value();
  for (const auto& [processes, metric] :
       {std::pair(&spec.workers, "worker_peak_bytes"), {&spec.servers, "server_peak_bytes"}}) {
    constexpr double kProgram = 10 << 20;
    EXPECT_GT(used[metric], kProgram) << metric;
    EXPECT_GT(processes->resources.requests.at("memory").AsDouble(), used[metric]) << metric;
  }
}

TEST_F(Pods, WhatPodsCannotReachIsRefusedBeforeThereIsOne) {
  PodCluster::Options options;
  options.image = "sluice";
  cluster_.reset();
  cluster_ = PodCluster::Start(KubernetesAccess::Open({kubelet_->kubeconfig(), "", ""}).value(),
                               options, std::make_unique<LocalCluster>(Machine(8)))
                 .value();
  RecordingSink sink;
  const Status status =
      Train("m",
            "engine.num_workers=2, engine.num_ps=1, engine.checkpoint_dir='/nowhere/m', "
            "engine.template='spot'",
            sink);
  EXPECT_THAT(status.ToString(), HasSubstr("pods cannot reach the database at '127.0.0.1'"));
  EXPECT_THAT(status.ToString(), HasSubstr("no volume of the pods holds '/nowhere/m'"));
  EXPECT_THAT(status.ToString(), HasSubstr("there is no PodTemplate 'spot' in namespace training"));
  EXPECT_THAT(catalog_->jobs().List().value(), IsEmpty());
  EXPECT_EQ(kubelet_->Count(k8s::kServices), 0U);
}

}  // namespace
}  // namespace sluice::executor
