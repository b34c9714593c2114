#include "elastic/fleet/server_scaling.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "elastic/fleet/autoscaler.h"

namespace sluice::elastic {
namespace {

TimePoint SecondsLater(double second) {
  return TimePoint(std::chrono::hours(1)) +
         std::chrono::duration_cast<TimePoint>(std::chrono::duration<double>(second));
}

// A job whose batch needs one unit of a worker's time, and the exchange as much as `exchange` says
// for so many workers and servers. Rates vary by 2 %.
class TrainedJob {
 public:
  using Exchange = std::function<double(double workers, double servers)>;
  TrainedJob(uint32_t least, uint32_t most, Exchange exchange) : exchange_(std::move(exchange)) {
    load_.least = load_.asked = load_.serving = least;
    load_.most = most;
  }

  void Train(uint32_t workers, int seconds) {
    for (int i = 0; i < seconds; ++i) {
      second_ += 1;
      load_.workers = workers;
      const double exchange = exchange_(workers, load_.serving);
      load_.exchange = exchange / (1 + exchange) * Noise();
      load_.rows_per_second = pause ? 0 : 1000 * workers / (1 + exchange) * Noise();
      const ServerDecision decision = ScaleServers(load_, scaling_, SecondsLater(second_));
      scaling_ = decision.scaling;
      if (decision.servers != load_.asked) {
        EXPECT_FALSE(decision.reason.empty());
        EXPECT_GE(decision.servers, load_.least);
        EXPECT_LE(decision.servers, load_.most);
        reasons.push_back(decision.reason);
        load_.asked = decision.servers;
      } else if (room || load_.asked < load_.serving) {
        load_.serving = load_.asked;  // a second later
      }
    }
  }
  uint32_t asked() const { return load_.asked; }
  uint32_t serving() const { return load_.serving; }
  double second() const { return second_; }

  bool room = true, pause = false;
  std::vector<std::string> reasons;

 private:
  double Noise() { return std::uniform_real_distribution<double>(0.98, 1.02)(random_); }

  const Exchange exchange_;
  ServerLoad load_;
  ServerScaling scaling_;
  double second_ = 0;
  std::mt19937 random_{7};
};

// What the servers do is shared among them.
double Shared(double workers, double servers) {
  return 0.15 * workers / servers;
}

TEST(ServerScaling, TheyFollowTheWorkers) {
  TrainedJob job(2, 4, Shared);
  job.Train(2, 60);
  EXPECT_EQ(job.serving(), 2U);
  job.Train(8, 60);
  EXPECT_EQ(job.serving(), 4U);
  job.Train(4, 60);
  EXPECT_EQ(job.serving(), 3U);
  job.Train(8, 60);
  EXPECT_EQ(job.serving(), 4U);
  job.Train(2, 60);
  EXPECT_EQ(job.serving(), 2U);
  EXPECT_EQ(job.reasons.front().substr(0, 19), "the exchange takes ");
}

TEST(ServerScaling, AfterEachChangeTheyComeToRest) {
  for (uint32_t workers = 1; workers <= 16; ++workers) {
    TrainedJob job(1, 16, Shared);
    job.Train(workers, 300);
    const size_t changes = job.reasons.size();
    job.Train(workers, 1'000);
    EXPECT_EQ(job.reasons.size(), changes) << workers << " workers";
  }
}

// An exchange that has other reasons: a slow network, or the processors of one machine.
TEST(ServerScaling, AServerThatDoesNotHelpLeavesAgain) {
  TrainedJob job(1, 8, [](double, double) { return 2; });
  job.Train(4, 600);
  EXPECT_EQ(job.serving(), 1U);
  ASSERT_EQ(job.reasons.size(), 2U);
  EXPECT_EQ(job.reasons[1].substr(0, 25), "with one more it trained ") << job.reasons[1];
  job.Train(3, 200);
  EXPECT_EQ(job.reasons.size(), 2U) << "it cannot help fewer workers";
  job.Train(5, 200);
  EXPECT_EQ(job.reasons.size(), 4U) << "it may help more";
  job.Train(5, 1'500);
  EXPECT_EQ(job.reasons.size(), 4U);
  job.Train(5, 300);
  EXPECT_EQ(job.reasons.size(), 6U) << "in half an hour it may, since in a quarter it did not";
}

TEST(ServerScaling, WithoutRoomItIsNotAskedForAgain) {
  TrainedJob job(2, 4, Shared);
  job.room = false;
  job.Train(8, 30);
  EXPECT_EQ(job.asked(), 3U);
  job.Train(8, 100);
  EXPECT_EQ(job.asked(), 2U);
  EXPECT_EQ(job.reasons.back(), "no room for a further one in 60 s");
  job.Train(8, 200);
  EXPECT_EQ(job.reasons.size(), 2U);
  job.room = true;
  job.Train(8, 300);
  EXPECT_EQ(job.serving(), 4U) << "others have ended";
}

TEST(ServerScaling, WithoutRoomItDoesNotWaitForWorkersThatComeAndGo) {
  TrainedJob job(2, 4, Shared);
  job.room = false;
  job.Train(8, 30);
  ASSERT_EQ(job.asked(), 3U);
  for (uint32_t i = 0; i < 6; ++i) {
    job.Train(8 - i % 2, 12);
  }
  EXPECT_EQ(job.asked(), 2U);
  job.Train(8, 200);
  EXPECT_EQ(job.reasons.size(), 2U) << "eight asked for it";
}

TEST(ServerScaling, WhatAPauseMeasuresDoesNotCount) {
  TrainedJob job(1, 8, Shared);
  job.Train(8, 10);
  ASSERT_EQ(job.serving(), 2U);
  job.pause = true;
  job.Train(8, 100);
  job.pause = false;
  job.Train(8, 200);
  EXPECT_GT(job.serving(), 2U);
  for (const std::string& reason : job.reasons) {
    EXPECT_EQ(reason.substr(0, 4), "the ") << reason;
  }
}

TEST(ServerScaling, NonsenseChangesNothing) {
  const double nan = std::nan("");
  const auto changes = [](uint32_t workers, double exchange, double rate, int step) {
    const ServerLoad load{1, 4, 2, 2, workers, exchange, rate};
    ServerScaling scaling;
    for (int i = 0; i < 100; ++i) {
      const ServerDecision decision = ScaleServers(load, scaling, SecondsLater(step * i));
      if (decision.servers != load.asked) {
        return true;
      }
      scaling = decision.scaling;
    }
    return false;
  };
  EXPECT_TRUE(changes(4, 0.9, 100, 1));
  EXPECT_TRUE(changes(4, 0.0, 100, 1));
  EXPECT_FALSE(changes(4, 0.9, 100, -1)) << "a clock that goes back";
  EXPECT_FALSE(changes(0, 0.9, 100, 1));
  for (const double exchange : {nan, -1.0, 1.5, HUGE_VAL}) {
    EXPECT_FALSE(changes(4, exchange, 100, 1)) << exchange;
  }
  for (const double rate : {nan, -1.0, 0.0}) {
    EXPECT_FALSE(changes(4, 0.9, rate, 1)) << rate;
  }
}

// Together with the autoscaler: a service takes half of the cluster and gives it back.
TEST(ServerScaling, ServersAndWorkersShareACluster) {
  ClusterState state;
  state.nodes.push_back({"n", {12, int64_t{1} << 40, 0}});
  ClusterJob described;
  described.name = "job";
  described.max = 8;
  described.worker = {1, 1, 0};
  state.jobs.push_back(described);
  const auto process = [&](int job, bool worker, double cpu, int node) {
    ClusterProcess one;
    one.job = job;
    one.worker = worker;
    one.request = {cpu, 1, 0};
    one.node = node;
    state.processes.push_back(one);
  };
  const auto count = [&](bool worker) {
    uint32_t all = 0;
    for (const ClusterProcess& one : state.processes) {
      all += one.job == 0 && one.worker == worker && one.node == 0 ? 1 : 0;
    }
    return all;
  };
  process(0, false, 1, 0);
  process(0, false, 1, 0);
  TrainedJob job(2, 4, Shared);
  AutoscalerHistory history;
  const auto run = [&](int seconds) {
    for (int i = 0; i < seconds; ++i) {
      const ScalingDecision decision = Autoscale(state, {}, history, SecondsLater(job.second()));
      history = decision.history;
      for (const auto& [index, node] : decision.puts) {
        state.processes[index].node = node;
      }
      for (const size_t victim : decision.victims) {
        state.processes[victim].terminating = true;
      }
      for (const ScalingDecision::Start& start : decision.starts) {
        process(0, true, 1, start.node);
      }
      std::erase_if(state.processes, [](const ClusterProcess& one) { return one.terminating; });
      job.room = count(false) >= job.asked();
      job.Train(count(true), 1);
      uint32_t servers = 0;
      std::erase_if(state.processes, [&](const ClusterProcess& one) {
        return one.job == 0 && !one.worker && ++servers > job.asked();
      });
      for (; servers < job.asked(); ++servers) {
        process(0, false, 1, ClusterProcess::kNone);
      }
    }
  };
  run(120);
  EXPECT_EQ(count(true), 8U);
  EXPECT_EQ(count(false), 4U);
  process(ClusterProcess::kNone, false, 5, ClusterProcess::kNone);
  run(120);
  EXPECT_EQ(count(true) + count(false), 7U);
  EXPECT_EQ(count(false), 3U);
  state.processes.erase(std::find_if(state.processes.begin(), state.processes.end(),
                                     [](const ClusterProcess& one) { return one.job < 0; }));
  run(120);
  EXPECT_EQ(count(true), 8U);
  EXPECT_EQ(count(false), 4U);
}

}  // namespace
}  // namespace sluice::elastic
