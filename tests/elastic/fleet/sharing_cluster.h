#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>

#include "elastic/fleet/autoscaler.h"

namespace sluice::elastic {

inline constexpr int64_t kGiga = int64_t{1} << 30;

// A cluster that carries out the autoscaler's decisions at once; victims end when Settle is called.
class SharingCluster {
 public:
  explicit SharingCluster(int nodes = 1, double cpu = 10, int64_t memory = 100 * kGiga,
                          double gpu = 0) {
    for (int i = 0; i < nodes; ++i) {
      state.nodes.push_back({"n" + std::to_string(i), {cpu, memory, gpu}, false});
    }
  }
  int Job(uint32_t min, uint32_t max, int priority = 0, Capacity worker = {1, kGiga, 0}) {
    ClusterJob job;
    job.name = "job" + std::to_string(state.jobs.size());
    job.min = min;
    job.max = max;
    job.priority = priority;
    job.arrival = now;
    job.worker = worker;
    state.jobs.push_back(job);
    return static_cast<int>(state.jobs.size()) - 1;
  }
  void Run(int job, int count, int node = 0, bool worker = true) {
    for (int i = 0; i < count; ++i) {
      ClusterProcess process;
      process.name = "p" + std::to_string(state.processes.size());
      process.node = node;
      process.job = job;
      process.worker = worker;
      process.request =
          job >= 0 ? state.jobs[static_cast<size_t>(job)].worker : Capacity{1, kGiga, 0};
      process.started = now;
      state.processes.push_back(process);
    }
  }
  ScalingDecision Decide() {
    ScalingDecision decision = Autoscale(state, options, history, now);
    history = decision.history;
    for (const size_t victim : decision.victims) {
      state.processes[victim].terminating = true;
    }
    for (const auto& [process, node] : decision.puts) {
      state.processes[process].node = node;
    }
    for (const ScalingDecision::Start& start : decision.starts) {
      Run(start.job, 1, start.node);
    }
    return decision;
  }
  void Pass(double seconds) {
    now += std::chrono::duration_cast<TimePoint>(std::chrono::duration<double>(seconds));
  }
  void Settle() {
    std::erase_if(state.processes, [](const ClusterProcess& p) { return p.terminating; });
  }
  int Workers(int job) const {
    return static_cast<int>(std::count_if(
        state.processes.begin(), state.processes.end(), [job](const ClusterProcess& p) {
          return p.job == job && p.worker && !p.terminating && p.node != ClusterProcess::kNone;
        }));
  }
  // Repeats until nothing changes.
  void Converge() {
    for (int i = 0; i < 20; ++i) {
      Decide();
      Settle();
      Pass(5);
    }
  }

  ClusterState state;
  AutoscalerOptions options;
  AutoscalerHistory history;
  TimePoint now = std::chrono::hours(1);
};

}  // namespace sluice::elastic
