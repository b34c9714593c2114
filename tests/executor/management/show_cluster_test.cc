#include "executor/management/show_cluster.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>

#include "executor/local/job_news.h"
#include "executor/local/job_process.pb.h"
#include "executor/local/local_cluster.h"
#include "executor/local/new_job.h"
#include "executor/management/show.h"
#include "planner/plan.pb.h"
#include "tests/executor/sqlite_test.h"
#include "tests/support/recording_sink.h"

namespace sluice::executor {
namespace {

// Nodes and processes as the test says.
class StaticCluster final : public Cluster {
 public:
  Result<StartedJob> StartJob(Context& /*context*/, JobConfig /*config*/,
                              JobSecrets /*secrets*/) override {
    return Internal("starts nothing");
  }
  Status Train(const plan::TrainPlan& /*plan*/, Context& /*context*/, JobRecord& /*job*/,
               const elastic::ProgressCallback& /*progress*/) override {
    return Internal("trains nothing");
  }
  Result<elastic::ClusterState> State(const std::stop_token& /*stop*/) override { return state; }
  Result<elastic::StartForecast> Forecast(const plan::TrainPlan& /*plan*/,
                                          const std::stop_token& /*stop*/) override {
    return Internal("knows nothing");
  }
  int64_t memory_bytes() const override { return 0; }
  JobCloser& closer() override { return closer_; }
  std::string Describe() const override { return "a test"; }

  Result<elastic::ClusterState> state = elastic::ClusterState();

 private:
  JobCloser closer_;
};

class ShowClusterTest : public SqliteTest {
 protected:
  Status Show(Cluster* cluster, RecordingSink& sink) {
    plan::ShowPlan plan;
    plan.set_what(plan::ShowPlan::CLUSTER);
    Context context{*source_, *catalog_, "tester", "SHOW CLUSTER", {}, cluster};
    return ExecuteShow(plan, context, sink);
  }
};

TEST_F(ShowClusterTest, ANodeIsARow) {
  constexpr int64_t kGiga = int64_t{1} << 30;
  StaticCluster cluster;
  elastic::ClusterState& state = cluster.state.value();
  state.nodes = {{"a", {8, 16 * kGiga, 0}, false, false},
                 {"b", {4, 8 * kGiga, 0}, true, false},
                 {"c", {4, 8 * kGiga, 0}, false, true},
                 {"d", {4, 8 * kGiga, 0}, true, true}};
  state.jobs.resize(1);
  elastic::ClusterProcess service;
  service.node = 0;
  service.request = {0.5, kGiga, 0};
  elastic::ClusterProcess worker;
  worker.node = 0;
  worker.job = 0;
  worker.worker = true;
  worker.request = {2, 3 * kGiga, 0};
  state.processes = {service, worker, worker};
  RecordingSink sink;
  ASSERT_TRUE(Show(&cluster, sink).ok());
  EXPECT_EQ(sink.tag, "SHOW");
  ASSERT_EQ(sink.schema.columns.size(), ClusterColumns().columns.size());
  ASSERT_EQ(sink.rows.size(), 4U);
  const std::vector<Value> a = {
      std::string("a"), std::string("ready"), 8.0,           0.5,           4.0,       3.5,
      int64_t{16384},   int64_t{1024},        int64_t{6144}, int64_t{9216}, int64_t{2}};
  EXPECT_EQ(sink.rows[0], a);
  EXPECT_EQ(sink.rows[1][1], Value(std::string("suspect")));
  EXPECT_EQ(sink.rows[2][1], Value(std::string("cordoned")));
  EXPECT_EQ(sink.rows[3][1], Value(std::string("suspect, cordoned")));
  EXPECT_EQ(sink.rows[3][5], Value(4.0));
}

TEST_F(ShowClusterTest, WhatTheClusterAnswersIsTheError) {
  StaticCluster cluster;
  cluster.state = Status(Code::kPermissionDenied, "rights are missing: list nodes");
  RecordingSink sink;
  EXPECT_EQ(Show(&cluster, sink).message(), "rights are missing: list nodes");
  EXPECT_EQ(Show(nullptr, sink).code(), Code::kFailedPrecondition);
  EXPECT_TRUE(sink.rows.empty());
}

TEST_F(ShowClusterTest, ThisMachineIsOneNode) {
  LocalCluster::Options options;
  options.slots.slots = 4;
  options.slots.memory_bytes = int64_t{8} << 30;
  options.slots.autoscaler.hysteresis_seconds = 0;
  LocalCluster cluster(options);
  std::mutex mutex;
  std::condition_variable changed;
  uint32_t granted = 0;
  Room::Request request;
  request.name = "job";
  request.min = request.max = 3;
  request.memory_bytes = int64_t{1} << 30;
  request.servers = 2;
  request.server_memory_bytes = int64_t{1} << 29;
  const auto share = cluster.Open(request, {[](const elastic::FleetEvent& /*event*/) {},
                                            [&](const Room::Grant& grant) {
                                              const std::lock_guard lock(mutex);
                                              granted = grant.workers;
                                              changed.notify_all();
                                            }});
  ASSERT_TRUE(share.ok()) << share.status().ToString();
  {
    std::unique_lock lock(mutex);
    ASSERT_TRUE(changed.wait_for(lock, std::chrono::seconds(30), [&] { return granted == 3; }));
  }
  RecordingSink sink;
  ASSERT_TRUE(Show(&cluster, sink).ok());
  const std::vector<Value> row = {std::string("this machine"),
                                  std::string("ready"),
                                  4.0,
                                  0.0,
                                  3.0,
                                  1.0,
                                  int64_t{8192},
                                  int64_t{0},
                                  int64_t{4096},
                                  int64_t{4096},
                                  int64_t{5}};
  EXPECT_EQ(sink.rows, std::vector<std::vector<Value>>{row});

  plan::TrainPlan plan;
  plan.mutable_strategy()->set_min_workers(1);
  plan.mutable_strategy()->set_max_workers(2);
  plan.mutable_strategy()->set_cpu(1);
  EXPECT_EQ(elastic::DescribeStart(cluster.Forecast(plan, {}).value()),
            "1 of 2 workers at once; 1 waits: other jobs have their share");
}

}  // namespace
}  // namespace sluice::executor
