#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "elastic/fleet/autoscaler.h"

// The two experiments of PaddlePaddle EDL (133 nodes, 2,352 processors, in 2017) on virtual time:
// jobs of 10 servers of 4 processors, a master of 1, and workers of 5; Nginx of 3. A start takes 3
// to 10 seconds, an end 2. Processes that are not ours are placed as Kubernetes does, on the
// emptiest node, first come first served.
namespace sluice::elastic {

struct ClusterFigures {
  double pending_seconds = 0;     // mean over the jobs: from arrival to the first running worker
  double jain = 0;                // of running workers, 400 to 500 s
  double jobs_below_minimum = 0;  // mean, 400 to 500 s
  double utilisation = 0;         // by running requests; case 1: 300 to 500 s, case 2: all
  double foreground_short = 0;    // missing over wanted process-seconds, while its demand grows
  double foreground_back_seconds = 0;  // from the last growth of demand until all of it runs
};

class ClusterSimulation {
 public:
  enum class Scaling { kAutoscaler, kFixed };

  ClusterSimulation(Scaling scaling, uint64_t seed) : scaling_(scaling), random_(seed) {
    constexpr double kDaemons = 0.38;  // the cluster's base load, as a share of each node
    constexpr int64_t kMemory = int64_t{100} << 30;
    for (int i = 0; i < 133; ++i) {
      const double cpu = i < 70 ? 12 : 24;
      total_cpu_ += cpu;
      base_cpu_ += kDaemons;
      state_.nodes.push_back({"n" + std::to_string(i), {cpu - kDaemons, kMemory, 0}, false});
    }
  }

  ClusterFigures RunCase1() {
    for (int step = 0; step < Steps(550); ++step) {
      now_ = step * kStep;
      if (step % Steps(10) == 0 && step < Steps(200)) {
        AddJob(60);
      }
      Step(step);
      if (step >= Steps(300) && step < Steps(500)) {
        Sample(&utilisation_, Utilisation());
      }
      if (step >= Steps(400) && step < Steps(500)) {
        SampleJobs();
      }
    }
    return Figures();
  }

  ClusterFigures RunCase2() {
    SetForeground(400);
    for (int step = 0; step < Steps(15); ++step) {
      Step(step);
    }
    const int begin = Steps(15);
    std::optional<int> back;
    for (int step = 0; step < Steps(25 + 60 + 6 * 90 + 120); ++step) {
      now_ = (begin + step) * kStep;
      if (step % Steps(5) == 0 && step < Steps(30)) {
        AddJob(15);
      }
      constexpr int kWanted[] = {300, 200, 100, 200, 300, 400};
      for (int change = 0; change < 6; ++change) {
        if (step == Steps(85 + 90 * change)) {
          SetForeground(kWanted[change]);
        }
      }
      Step(begin + step);
      Sample(&utilisation_, Utilisation());
      const auto running = static_cast<double>(ForegroundRunning());
      if (step >= Steps(85 + 90 * 3)) {
        wanted_seconds_ += wanted_foreground_;
        short_seconds_ += std::max(0.0, wanted_foreground_ - running);
      }
      if (step >= Steps(85 + 90 * 5) && !back && running >= 400) {
        back = step - Steps(85 + 90 * 5);
      }
    }
    ClusterFigures figures = Figures();
    figures.foreground_back_seconds = back ? *back * kStep : 1e9;
    return figures;
  }

 private:
  static constexpr double kStep = 0.25;
  static constexpr double kGrace = 2;
  static constexpr int64_t kGiga = int64_t{1} << 30;
  static int Steps(double seconds) { return static_cast<int>(seconds / kStep); }
  static TimePoint At(double seconds) {
    return std::chrono::duration_cast<TimePoint>(std::chrono::duration<double>(seconds));
  }

  struct Life {
    double runs_at = -1;  // < 0: not placed yet
    double gone_at = -1;
  };

  int AddProcess(int job, bool worker, const Capacity& request) {
    ClusterProcess process;
    process.name = "p" + std::to_string(++made_);
    process.job = job;
    process.worker = worker;
    process.request = request;
    process.started = At(now_);
    process.cost = std::uniform_real_distribution<double>(0, 512)(random_);
    state_.processes.push_back(process);
    lives_.emplace_back();
    return static_cast<int>(state_.processes.size()) - 1;
  }
  void Put(size_t i, int node) {
    state_.processes[i].node = node;
    lives_[i].runs_at = now_ + std::uniform_real_distribution<double>(3, 10)(random_);
  }
  void AddJob(uint32_t fixed) {
    const int index = static_cast<int>(state_.jobs.size());
    ClusterJob job;
    job.name = "job" + std::to_string(index);
    job.min = 2;
    job.max = 60;
    job.arrival = At(now_);
    job.worker = {5, 8 * kGiga, 0};
    state_.jobs.push_back(job);
    first_running_.emplace_back();
    AddProcess(index, false, {1, kGiga, 0});
    for (int i = 0; i < 10; ++i) {
      AddProcess(index, false, {4, 5 * kGiga, 0});
    }
    for (uint32_t i = 0; scaling_ == Scaling::kFixed && i < fixed; ++i) {
      AddProcess(index, true, {5, 8 * kGiga, 0});
    }
  }
  void SetForeground(int wanted) {
    wanted_foreground_ = wanted;
    int there = 0;
    for (size_t i = 0; i < state_.processes.size(); ++i) {
      ClusterProcess& process = state_.processes[i];
      if (process.job == ClusterProcess::kNone && !process.terminating && ++there > wanted) {
        End(i);
      }
    }
    for (; there < wanted; ++there) {
      AddProcess(ClusterProcess::kNone, false, {3, 3 * kGiga, 0});
    }
  }
  void End(size_t i) {
    state_.processes[i].terminating = true;
    lives_[i].gone_at = now_ + (state_.processes[i].node == ClusterProcess::kNone ? 0 : kGrace);
  }
  bool Running(size_t i) const { return lives_[i].runs_at >= 0 && lives_[i].runs_at <= now_; }

  void Step(int step) {
    now_ = step * kStep;
    for (size_t i = state_.processes.size(); i-- > 0;) {
      if (lives_[i].gone_at >= 0 && lives_[i].gone_at <= now_) {
        state_.processes.erase(state_.processes.begin() + static_cast<std::ptrdiff_t>(i));
        lives_.erase(lives_.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
    for (size_t i = 0; i < state_.processes.size(); ++i) {
      const ClusterProcess& process = state_.processes[i];
      if (process.worker && Running(i)) {
        auto& first = first_running_[static_cast<size_t>(process.job)];
        first = first.value_or(now_);
      }
    }
    ScheduleAsKubernetes();
    if (scaling_ == Scaling::kAutoscaler) {
      Scale();
    }
  }

  // On the node with the largest free share; a process that fits nowhere does not block the others.
  void ScheduleAsKubernetes() {
    std::vector<Capacity> room = Room();
    for (size_t i = 0; i < state_.processes.size(); ++i) {
      const ClusterProcess& process = state_.processes[i];
      const bool ours = scaling_ == Scaling::kFixed || process.job == ClusterProcess::kNone;
      if (process.node != ClusterProcess::kNone || process.terminating || !ours) {
        continue;
      }
      int best = ClusterProcess::kNone;
      double best_share = 0;
      for (size_t node = 0; node < room.size(); ++node) {
        const double share = room[node].cpu / state_.nodes[node].capacity.cpu;
        if (room[node].Fits(process.request) && share > best_share) {
          best = static_cast<int>(node);
          best_share = share;
        }
      }
      if (best != ClusterProcess::kNone) {
        room[static_cast<size_t>(best)] -= process.request;
        Put(i, best);
      }
    }
  }
  std::vector<Capacity> Room() const {
    std::vector<Capacity> room;
    for (const ClusterNode& node : state_.nodes) {
      room.push_back(node.capacity);
    }
    for (const ClusterProcess& process : state_.processes) {
      if (process.node != ClusterProcess::kNone) {
        room[static_cast<size_t>(process.node)] -= process.request;
      }
    }
    return room;
  }

  void Scale() {
    const ScalingDecision decision = Autoscale(state_, AutoscalerOptions(), history_, At(now_));
    history_ = decision.history;
    for (const size_t victim : decision.victims) {
      End(victim);
    }
    for (const auto& [process, node] : decision.puts) {
      if (state_.processes[process].job != ClusterProcess::kNone) {
        Put(process, node);
      }
    }
    for (const ScalingDecision::Start& start : decision.starts) {
      const int i =
          AddProcess(start.job, true, decision.targets[static_cast<size_t>(start.job)].worker);
      Put(static_cast<size_t>(i), start.node);
    }
  }

  double Utilisation() const {
    double used = base_cpu_;
    for (size_t i = 0; i < state_.processes.size(); ++i) {
      used += Running(i) ? state_.processes[i].request.cpu : 0;
    }
    return used / total_cpu_;
  }
  int ForegroundRunning() const {
    int running = 0;
    for (size_t i = 0; i < state_.processes.size(); ++i) {
      running += state_.processes[i].job == ClusterProcess::kNone &&
                         !state_.processes[i].terminating && Running(i)
                     ? 1
                     : 0;
    }
    return running;
  }
  struct Mean {
    double sum = 0;
    int count = 0;
    double value() const { return count > 0 ? sum / count : 0; }
  };
  static void Sample(Mean* mean, double value) {
    mean->sum += value;
    ++mean->count;
  }
  void SampleJobs() {
    std::vector<double> workers(state_.jobs.size(), 0);
    for (size_t i = 0; i < state_.processes.size(); ++i) {
      if (state_.processes[i].worker && Running(i)) {
        ++workers[static_cast<size_t>(state_.processes[i].job)];
      }
    }
    double sum = 0, squares = 0;
    int below = 0;
    for (const double n : workers) {
      sum += n;
      squares += n * n;
      below += n < 2 ? 1 : 0;
    }
    Sample(&jain_, squares > 0 ? sum * sum / (static_cast<double>(workers.size()) * squares) : 0);
    Sample(&below_, below);
  }
  ClusterFigures Figures() const {
    ClusterFigures figures;
    Mean pending;
    for (size_t job = 0; job < state_.jobs.size(); ++job) {
      const double arrival = std::chrono::duration<double>(state_.jobs[job].arrival).count();
      Sample(&pending, first_running_[job].value_or(now_) - arrival);
    }
    figures.pending_seconds = pending.value();
    figures.jain = jain_.value();
    figures.jobs_below_minimum = below_.value();
    figures.utilisation = utilisation_.value();
    figures.foreground_short = wanted_seconds_ > 0 ? short_seconds_ / wanted_seconds_ : 0;
    return figures;
  }

  const Scaling scaling_;
  std::mt19937_64 random_;
  ClusterState state_;
  std::vector<Life> lives_;  // of state_.processes
  AutoscalerHistory history_;
  double now_ = 0;
  int made_ = 0;
  double total_cpu_ = 0, base_cpu_ = 0;
  int wanted_foreground_ = 0;
  std::vector<std::optional<double>> first_running_;  // by job
  Mean utilisation_, jain_, below_;
  double wanted_seconds_ = 0, short_seconds_ = 0;
};

}  // namespace sluice::elastic
