#include <fmt/core.h>
#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "elastic/fleet/autoscaler.h"

namespace sluice::elastic::simulation {
namespace {

// A cluster under one seed's faults, on virtual time: jobs and foreground processes come and go,
// workers die, nodes are lost, return, or become suspect; the autoscaler decides after each event.
//
//   I6 a job gets no workers, or between its smallest and its largest number; nothing is placed
//   where there is no room; only running workers are stopped
class Allocation {
 public:
  explicit Allocation(uint64_t seed) : random_(seed) {
    for (int i = 0, count = Below(4) + 1; i < count; ++i) {
      const Capacity capacity{static_cast<double>(2 + Below(15)), (4 + Below(60)) * kGiB, 0};
      state_.nodes.push_back({fmt::format("node{}", i), capacity, false});
      whole_.push_back(capacity);
    }
  }

  // "": I6 held; else what was violated.
  std::string Run() {
    for (int step = 0; step < 60 && broken_.empty(); ++step) {
      now_ += std::chrono::milliseconds(Below(8000));
      Fault();
      const ScalingDecision decision = Autoscale(state_, options_, history_, now_);
      Check(decision);
      Apply(decision);
    }
    return broken_;
  }
  int64_t starts() const { return starts_; }
  int64_t victims() const { return victims_; }

 private:
  static constexpr int64_t kGiB = int64_t{1} << 30;

  int Below(int limit) { return static_cast<int>(random_() % static_cast<uint64_t>(limit)); }
  void Break(const std::string& what) { broken_ = broken_.empty() ? what : broken_; }

  void AddJob() {
    ClusterJob job;
    job.name = fmt::format("job{}", ++named_);
    job.min = static_cast<uint32_t>(1 + Below(3));
    job.max = job.min + static_cast<uint32_t>(Below(8));
    job.priority = Below(3);
    job.arrival = now_;
    job.weight = 1 + Below(2);
    job.worker = {0.5 * (1 + Below(4)), (1 + Below(6)) * kGiB, 0};
    const int index = static_cast<int>(state_.jobs.size());
    state_.jobs.push_back(job);
    for (int server = Below(3); server > 0; --server) {
      AddProcess(index, false, {1, kGiB, 0});
    }
  }
  void AddProcess(int job, bool worker, const Capacity& request, int node = ClusterProcess::kNone) {
    ClusterProcess process;
    process.name = fmt::format("process{}", ++named_);
    process.job = job;
    process.worker = worker;
    process.request = request;
    process.node = node;
    process.started = now_;
    process.cost = Below(500);
    state_.processes.push_back(process);
  }
  template <typename Gone>
  void Remove(const Gone& gone) {
    std::erase_if(state_.processes, gone);
  }
  void EndJob(int index) {
    Remove([index](const ClusterProcess& process) { return process.job == index; });
    state_.jobs.erase(state_.jobs.begin() + index);
    for (ClusterProcess& process : state_.processes) {
      process.job -= process.job > index ? 1 : 0;
    }
  }

  void Fault() {
    Remove([this](const ClusterProcess& process) { return process.terminating && Below(2) == 0; });
    const int node = Below(static_cast<int>(state_.nodes.size()));
    ClusterNode& at = state_.nodes[static_cast<size_t>(node)];
    switch (Below(9)) {
      case 0:
      case 1:
        AddJob();
        break;
      case 2:
        if (!state_.jobs.empty()) {
          EndJob(Below(static_cast<int>(state_.jobs.size())));
        }
        break;
      case 3:
        AddProcess(ClusterProcess::kNone, false, {0.5 * (1 + Below(8)), kGiB, 0});
        break;
      case 4:
        Remove([this](const ClusterProcess& process) { return process.job < 0 && Below(2) == 0; });
        break;
      case 5:
        Remove([this](const ClusterProcess& process) { return process.worker && Below(3) == 0; });
        break;
      case 6:
        at.suspect = !at.suspect;
        break;
      case 7:  // lost with all its processes, or back
        if (at.capacity.cpu > 0) {
          at.capacity = {};
          Remove([node](const ClusterProcess& process) { return process.node == node; });
        } else {
          at.capacity = whole_[static_cast<size_t>(node)];
        }
        break;
      default:
        if (!state_.jobs.empty()) {
          ++state_.jobs[static_cast<size_t>(Below(static_cast<int>(state_.jobs.size())))]
                .out_of_memory;
        }
    }
  }

  void Check(const ScalingDecision& decision) {
    std::vector<int> stay(state_.jobs.size(), 0), live(state_.jobs.size(), 0);
    const std::set<size_t> victims(decision.victims.begin(), decision.victims.end());
    std::vector<Capacity> free;
    for (const ClusterNode& node : state_.nodes) {
      free.push_back(node.capacity);
    }
    for (size_t i = 0; i < state_.processes.size(); ++i) {
      const ClusterProcess& process = state_.processes[i];
      if (process.node != ClusterProcess::kNone) {
        free[static_cast<size_t>(process.node)] -= process.request;
      }
      if (process.worker && !process.terminating) {
        live[static_cast<size_t>(process.job)] += 1;
        stay[static_cast<size_t>(process.job)] += victims.contains(i) ? 0 : 1;
      }
      if (victims.contains(i) && (!process.worker || process.job < 0 || process.terminating)) {
        Break(process.name + " is stopped, and is no worker that runs");
      }
    }
    if (victims.size() != decision.victims.size()) {
      Break("somebody is stopped twice");
    }
    for (const ScalingDecision::Start& start : decision.starts) {
      const auto job = static_cast<size_t>(start.job);
      free[static_cast<size_t>(start.node)] -= decision.targets.at(job).worker;
      stay[job] += 1;
    }
    for (const auto& [process, node] : decision.puts) {
      free[static_cast<size_t>(node)] -= state_.processes.at(process).request;
    }
    for (size_t node = 0; node < free.size(); ++node) {
      if (free[node].cpu < -1e-9 || free[node].memory_bytes < 0) {
        Break(state_.nodes[node].name + " has no room for what is put there");
      }
    }
    for (size_t j = 0; j < state_.jobs.size(); ++j) {
      const ClusterJob& job = state_.jobs[j];
      const auto target = static_cast<int>(decision.targets.at(j).workers);
      if (target != 0 &&
          (target < static_cast<int>(job.min) || target > static_cast<int>(job.max))) {
        Break(fmt::format("{} shall have {} of {} to {}", job.name, target, job.min, job.max));
      }
      // Fewer may stay than are wanted: some wait for room, some are moved.
      if (stay[j] > target) {
        Break(fmt::format("{} has {} workers, {} stay or are started, and {} are wanted", job.name,
                          live[j], stay[j], target));
      }
    }
  }

  void Apply(const ScalingDecision& decision) {
    for (const size_t victim : decision.victims) {
      state_.processes[victim].terminating = true;
      ++victims_;
    }
    for (const auto& [process, node] : decision.puts) {
      state_.processes[process].node = node;
    }
    for (const ScalingDecision::Start& start : decision.starts) {
      AddProcess(start.job, true, decision.targets[static_cast<size_t>(start.job)].worker,
                 start.node);
      ++starts_;
    }
    history_ = decision.history;
  }

  std::mt19937_64 random_;
  ClusterState state_;
  std::vector<Capacity> whole_;
  AutoscalerOptions options_;
  AutoscalerHistory history_;
  TimePoint now_{std::chrono::seconds(100)};
  int named_ = 0;
  int64_t starts_ = 0, victims_ = 0;
  std::string broken_;
};

TEST(AllocationSimulation, I6_AThousandSeedsKeepMinimaMaximaAndCapacity) {
  int64_t starts = 0, victims = 0;
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    Allocation allocation(seed);
    ASSERT_EQ(allocation.Run(), "") << "seed " << seed;
    starts += allocation.starts();
    victims += allocation.victims();
  }
  EXPECT_GT(starts, 10'000);  // the seeds have exercised something
  EXPECT_GT(victims, 1'000);
}

}  // namespace
}  // namespace sluice::elastic::simulation
