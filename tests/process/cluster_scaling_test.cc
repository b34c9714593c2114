#include <gmock/gmock.h>

#include <atomic>

#include "tests/process/cluster_job.h"

// Slots, priorities and preemption with real processes.
namespace sluice::executor {
namespace {

using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class ClusterScaling : public ClusterJobs {
 protected:
  // A statement that runs in the background of the test.
  struct Job {
    Job(const ClusterScaling& test, LocalCluster& cluster, std::string sql)
        : source(test.Open()), thread([this, &cluster, sql = std::move(sql)] {
            sink.on_progress = [this] { workers = sink.progress.back().workers; };
            status = Run(sql, cluster, *source, sink, stop.get_token());
            done = true;
          }) {}
    ~Job() {
      stop.request_stop();
      thread.join();
    }
    std::stop_source stop;
    std::unique_ptr<catalog::DataSource> source;
    RecordingSink sink;
    std::atomic<int> workers{0};
    std::atomic<bool> done{false};
    Status status = Internal("not run");
    std::thread thread;
  };
  std::vector<double> Recorded(int64_t job, const std::string& name) const {
    std::vector<double> values;
    const std::vector<catalog::JobMetric> metrics = catalog_->jobs().Metrics(job).value();
    for (const catalog::JobMetric& metric : metrics) {
      if (metric.name == name) {
        values.push_back(metric.value);
      }
    }
    return values;
  }
};

TEST_F(ClusterScaling, K16_AHigherPriorityTakesWorkersAndGivesThemBack) {
  LocalCluster cluster(Machine(3));
  Job low(*this, cluster, TrainText("low", "train.epoch=100000, engine.max_workers=3"));
  ASSERT_TRUE(Eventually([&] { return low.workers == 3; }));
  Job high(*this, cluster,
           TrainText("high",
                     "train.epoch=3, engine.min_workers=1, engine.max_workers=2, "
                     "engine.priority=10"));
  EXPECT_TRUE(Eventually([&] { return Count(1, "worker_left") == 2; }));
  EXPECT_TRUE(Eventually([&] { return high.done.load(); }));
  EXPECT_TRUE(high.status.ok()) << high.status.ToString();
  EXPECT_TRUE(Eventually([&] { return Count(1, "worker_started") == 5; }));  // and grows again
  // They left on their own, in time; this was not taken for a loss, and no others were started.
  EXPECT_THAT(Events(1), Contains(ContainsRegex("worker_left job1-worker-.*exit code 143")));
  EXPECT_THAT(Events(1), Not(Contains(ContainsRegex("worker_left .*exit code 137"))));
  EXPECT_EQ(Count(1, "worker_lost"), 0);
  EXPECT_FALSE(low.done);
}

TEST_F(ClusterScaling, AHigherMinimumTakesTheLastWorkerAndTheJobGoesOnLater) {
  LocalCluster cluster(Machine(2));
  Job low(*this, cluster,
          TrainText("low", "train.epoch=40, engine.min_workers=1, engine.max_workers=2"));
  ASSERT_TRUE(Eventually([&] { return low.workers == 2; }));
  Job high(*this, cluster,
           TrainText("high",
                     "train.epoch=3, engine.min_workers=2, engine.max_workers=2, "
                     "engine.priority=10"));
  EXPECT_TRUE(Eventually([&] { return high.done.load(); }));
  EXPECT_TRUE(high.status.ok()) << high.status.ToString();
  EXPECT_TRUE(Eventually([&] { return low.done.load(); }));
  EXPECT_TRUE(low.status.ok()) << low.status.ToString();  // by the ledger: no row lost or doubled
  const std::vector<double> now = Recorded(1, "workers_now");
  const auto two = std::find(now.begin(), now.end(), 2);
  EXPECT_NE(std::find(two, now.end(), 0), now.end());  // Degraded
  EXPECT_EQ(Count(1, "worker_lost"), 0);
}

TEST_F(ClusterScaling, WithoutRoomAJobWaitsAndCanBeCancelled) {
  LocalCluster cluster(Machine(1));
  Job first(*this, cluster, TrainText("first", "train.epoch=100000, engine.max_workers=1"));
  ASSERT_TRUE(Eventually([&] { return first.workers == 1; }));
  Job second(*this, cluster, TrainText("second", "train.epoch=1, engine.max_workers=1"));
  Job third(*this, cluster, TrainText("third", "train.epoch=1, engine.max_workers=1"));
  ASSERT_TRUE(Eventually([&] {
    return catalog_->jobs().Find(3).ok() && !Recorded(2, "workers_now").empty() &&
           !Recorded(3, "workers_now").empty();
  }));
  EXPECT_FALSE(cluster.ProcessId("job2-master").ok());
  EXPECT_FALSE(cluster.ProcessId("job3-master").ok());
  third.stop.request_stop();
  EXPECT_TRUE(Eventually([&] { return third.done.load(); }));
  EXPECT_EQ(third.status.code(), Code::kCancelled) << third.status.ToString();
  EXPECT_FALSE(second.done);
  first.stop.request_stop();
  EXPECT_TRUE(Eventually([&] { return second.done.load(); }));
  EXPECT_TRUE(second.status.ok()) << second.status.ToString();
}

TEST_F(ClusterScaling, WhatCanNeverFitIsAnErrorBeforeAnythingStarts) {
  LocalCluster cluster(Machine(2));
  RecordingSink sink;
  const Status slots =
      Run(TrainText("m", "engine.min_workers=3, engine.max_workers=4"), cluster, *source_, sink);
  EXPECT_THAT(slots.ToString(), HasSubstr("more than the 2 slots"));
  const Status memory =
      Run(TrainText("m", "engine.num_workers=2, engine.memory='900TiB'"), cluster, *source_, sink);
  EXPECT_THAT(memory.ToString(), HasSubstr("engine.memory"));
  EXPECT_EQ(ChildrenOf(getpid()), 0);
}

}  // namespace
}  // namespace sluice::executor
