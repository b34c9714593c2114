#include "elastic/fleet/forecast.h"

#include <gtest/gtest.h>

namespace sluice::elastic {
namespace {

class Forecast : public testing::Test {
 protected:
  static constexpr int64_t kGiga = int64_t{1} << 30;
  void Node(double cpu) {
    state_.nodes.push_back({"n" + std::to_string(state_.nodes.size()), {cpu, 100 * kGiga, 0}});
  }
  size_t Job(uint32_t min, uint32_t max, int priority = 0) {
    ClusterJob job;
    job.name = "job" + std::to_string(state_.jobs.size());
    job.min = min;
    job.max = max;
    job.priority = priority;
    job.worker = {1, kGiga, 0};
    state_.jobs.push_back(job);
    return state_.jobs.size() - 1;
  }
  // Workers of a job, or (kNone) processes of services.
  void Run(int job, int count, int node = 0) {
    ClusterProcess process;
    process.node = node;
    process.job = job;
    process.worker = job != ClusterProcess::kNone;
    process.request = {1, kGiga, 0};
    state_.processes.insert(state_.processes.end(), static_cast<size_t>(count), process);
  }
  void WaitingServer(size_t job) {
    ClusterProcess process;
    process.job = static_cast<int>(job);
    process.request = {1, kGiga, 0};
    state_.processes.push_back(process);
  }
  // Of a running job: 1 row a second for each worker.
  void Measured(size_t job, double rows_left) {
    state_.jobs[job].throughput = {{1, 1}, {2, 2}, {4, 4}, {8, 8}};
    state_.jobs[job].rows_left = rows_left;
  }
  StartForecast Of(size_t job) const {
    return ForecastStart(state_, job, AutoscalerOptions(), TimePoint());
  }
  std::string Start(size_t job) const { return DescribeStart(Of(job)); }

  ClusterState state_;
};

TEST_F(Forecast, AnEmptyClusterStartsThemAll) {
  Node(8);
  EXPECT_EQ(Start(Job(1, 4)), "4 workers at once");
}

TEST_F(Forecast, ItsServersTakeRoomToo) {
  Node(4);
  const size_t job = Job(1, 4);
  WaitingServer(job);
  WaitingServer(job);
  EXPECT_EQ(Start(job), "2 of 4 workers at once; 2 wait: there is no room for more");
}

TEST_F(Forecast, WhatServicesHaveIsNotThere) {
  Node(4);
  Run(ClusterProcess::kNone, 3);
  EXPECT_EQ(Start(Job(1, 2)), "1 of 2 workers at once; 1 waits: there is no room for more");
}

TEST_F(Forecast, OtherJobsMakeRoomAndEndInTime) {
  Node(8);
  const size_t other = Job(1, 8);
  Run(0, 8);
  Measured(other, 320);
  EXPECT_EQ(Start(Job(2, 8)),
            "none of 8 workers at once, 4 when other jobs have made room; 4 wait: other jobs have "
            "their share; all 8 in about 40 s");
}

TEST_F(Forecast, ALaterJobOfTheSamePriorityDoesNotTakeAMinimum) {
  Node(4);
  Job(3, 4);
  Run(0, 4);
  const StartForecast forecast = Of(Job(2, 4));
  EXPECT_EQ(forecast.now, 0U);
  EXPECT_EQ(forecast.soon, 0U);
  EXPECT_EQ(forecast.useful, 4U);
  EXPECT_FALSE(forecast.seconds_until_all.has_value()) << "nobody knows when the other one ends";
  EXPECT_EQ(DescribeStart(forecast),
            "none of 4 workers at once; 4 wait: there is no room yet for the 2 workers that it "
            "needs at least");
}

TEST_F(Forecast, AHigherPriorityTakesWhatIsAboveTheMinimum) {
  Node(4);
  Job(1, 4);
  Run(0, 4);
  EXPECT_EQ(Start(Job(1, 4, 5)),
            "none of 4 workers at once, 3 when other jobs have made room; 1 waits: other jobs have "
            "their share");
}

TEST_F(Forecast, AMinimumBeyondTheClusterNeverStarts) {
  Node(2);
  Node(2);
  const StartForecast forecast = Of(Job(5, 6));
  EXPECT_FALSE(forecast.fits());
  EXPECT_EQ(
      DescribeStart(forecast),
      "none of 6 workers at once; 6 wait: it needs at least 5 workers, and all nodes together "
      "have room for 4");
}

TEST_F(Forecast, TheJobNeedNotBeTheLastOne) {
  Node(4);
  const size_t job = Job(1, 4);
  const size_t other = Job(1, 4);
  Run(1, 4);
  Measured(other, 40);
  EXPECT_EQ(Start(job),
            "none of 4 workers at once, 2 when other jobs have made room; 2 wait: other jobs have "
            "their share; all 4 in about 10 s");
}

TEST_F(Forecast, UseOfNodesCountsWhatRequestsSay) {
  Node(8);
  Node(8);
  state_.nodes[1].cordoned = true;
  const size_t job = Job(1, 4);
  Run(0, 2);
  Run(ClusterProcess::kNone, 3, 1);
  state_.processes.back().terminating = true;
  WaitingServer(job);
  const std::vector<NodeUse> uses = UseOfNodes(state_);
  ASSERT_EQ(uses.size(), 2U);
  EXPECT_EQ(uses[0].jobs.cpu, 2);
  EXPECT_EQ(uses[0].services.cpu, 0);
  EXPECT_EQ(uses[0].free.cpu, 6);
  EXPECT_EQ(uses[0].processes, 2U) << "not the one that waits";
  EXPECT_EQ(uses[1].services.cpu, 3) << "one that ends still has it";
  EXPECT_EQ(uses[1].free.memory_bytes, 97 * kGiga);
  EXPECT_EQ(uses[1].processes, 0U);
  EXPECT_TRUE(uses[1].cordoned);
}

}  // namespace
}  // namespace sluice::elastic
