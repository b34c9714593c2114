#include "elastic/fleet/forecast.h"

#include <algorithm>
#include <utility>

namespace sluice::elastic {
namespace {

ScalingDecision DecideWith(const ClusterState& state, AutoscalerOptions options, TimePoint now) {
  options.hysteresis_seconds = 0;
  return Autoscale(state, options, {}, now);
}

// The running job that ends first, and when; nullopt: not known of any.
std::optional<std::pair<size_t, double>> FirstToEnd(const ClusterState& state) {
  std::vector<uint32_t> running(state.jobs.size(), 0);
  for (const ClusterProcess& process : state.processes) {
    if (process.worker && !process.terminating && process.node != ClusterProcess::kNone) {
      ++running[static_cast<size_t>(process.job)];
    }
  }
  std::optional<std::pair<size_t, double>> first;
  for (size_t i = 0; i + 1 < state.jobs.size(); ++i) {  // the last one has not begun
    const ClusterJob& job = state.jobs[i];
    if (job.rows_left && !job.throughput.empty() && running[i] > 0) {
      const double rate = ThroughputAt(job, running[i]);
      const double seconds = rate > 0 ? *job.rows_left / rate : 0;
      if (rate > 0 && (!first || seconds < first->second)) {
        first = {i, seconds};
      }
    }
  }
  return first;
}

void Remove(ClusterState& state, size_t job) {
  const int index = static_cast<int>(job);
  std::erase_if(state.processes,
                [index](const ClusterProcess& process) { return process.job == index; });
  for (ClusterProcess& process : state.processes) {
    process.job -= process.job > index ? 1 : 0;
  }
  state.jobs.erase(state.jobs.begin() + index);
}

// What it can use: up to its knee, if that was measured.
uint32_t MostUseful(const ClusterJob& job, const AutoscalerOptions& options) {
  return std::clamp(KneeOf(job, options.knee).value_or(job.max), std::min(job.min, job.max),
                    job.max);
}

}  // namespace

std::vector<NodeUse> UseOfNodes(const ClusterState& state) {
  std::vector<NodeUse> uses;
  for (const ClusterNode& node : state.nodes) {
    uses.push_back({node.name, node.suspect, node.cordoned, node.capacity, {}, {}, node.capacity});
  }
  for (const ClusterProcess& process : state.processes) {
    if (process.node == ClusterProcess::kNone) {
      continue;
    }
    NodeUse& use = uses[static_cast<size_t>(process.node)];
    (process.job == ClusterProcess::kNone ? use.services : use.jobs) += process.request;
    use.free -= process.request;
    use.workers += process.worker ? 1 : 0;
  }
  return uses;
}

StartForecast ForecastStart(const ClusterState& state, ClusterJob job, uint32_t servers,
                            const Capacity& server, const AutoscalerOptions& options,
                            TimePoint now) {
  const auto with_job = [&](ClusterState with) {
    const int index = static_cast<int>(with.jobs.size());
    job.arrival = now;
    with.jobs.push_back(job);
    for (uint32_t i = 0; i < servers; ++i) {
      ClusterProcess process;
      process.job = index;
      process.request = server;
      with.processes.push_back(process);
    }
    return with;
  };
  StartForecast forecast;
  ClusterState without = state;
  while (!without.jobs.empty()) {
    Remove(without, without.jobs.size() - 1);
  }
  const uint32_t most = DecideWith(with_job(without), options, now).targets.back().workers;
  forecast.fits = most >= job.min;
  ClusterState with = with_job(state);
  const uint32_t useful = std::min(most, MostUseful(job, options));
  ScalingDecision decision = DecideWith(with, options, now);
  forecast.soon = decision.targets.back().workers;
  const int index = static_cast<int>(with.jobs.size()) - 1;
  forecast.now = static_cast<uint32_t>(
      std::count_if(decision.starts.begin(), decision.starts.end(),
                    [index](const ScalingDecision::Start& start) { return start.job == index; }));
  if (forecast.now < job.min) {
    forecast.now = 0;  // its smallest number or nothing
  }
  double seconds = 0;
  while (forecast.fits && decision.targets.back().workers < useful) {
    const auto first = FirstToEnd(with);
    if (!first) {
      return forecast;
    }
    seconds = std::max(seconds, first->second);
    Remove(with, first->first);
    decision = DecideWith(with, options, now);
  }
  if (forecast.fits) {
    forecast.seconds_until_all = seconds;
  }
  return forecast;
}

}  // namespace sluice::elastic
