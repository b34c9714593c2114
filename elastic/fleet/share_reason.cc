#include "elastic/fleet/share_reason.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace sluice::elastic {
namespace {

// How many of them an empty node takes, counted up to `enough`.
uint64_t TimesIn(const Capacity& room, const Capacity& request, uint64_t enough) {
  double times = static_cast<double>(enough);
  const auto limit = [&times](double has, double needs) {
    constexpr double kTiny = 1e-9;
    if (needs > kTiny) {
      times = std::min(times, std::floor(has / needs + kTiny));
    }
  };
  limit(room.cpu, request.cpu);
  limit(static_cast<double>(room.memory_bytes), static_cast<double>(request.memory_bytes));
  limit(room.gpu, request.gpu);
  limit(room.processes, request.processes);
  for (size_t i = 0; i < room.further.size(); ++i) {
    limit(room.further[i], request.further[i]);
  }
  return static_cast<uint64_t>(std::max(0.0, times));
}

// Workers that the cluster takes if nothing else is there, counted up to `enough`.
uint32_t MostThatFit(const ClusterState& state, const ClusterJob& job, uint32_t enough) {
  const Capacity request = RequestOf(job, state.nodes);
  uint64_t fit = 0;
  for (size_t node = 0; node < state.nodes.size() && fit < enough; ++node) {
    if (job.nodes == nullptr || (*job.nodes)[node]) {
      fit += TimesIn(state.nodes[node].capacity, request, enough - fit);
    }
  }
  return static_cast<uint32_t>(std::min<uint64_t>(fit, enough));
}

std::string WhyNone(const ClusterState& state, const ClusterJob& job) {
  if (state.nodes.empty()) {
    return "the cluster has no node";
  }
  const uint32_t fit = MostThatFit(state, job, job.min);
  if (fit < job.min) {
    return fmt::format("it needs at least {}, and all nodes together have room for {}",
                       CountWorkers(job.min), fit);
  }
  return fmt::format("there is no room yet for the {} that it needs at least",
                     CountWorkers(job.min));
}

}  // namespace

std::string CountWorkers(int64_t count) {
  return fmt::format("{} worker{}", count, count == 1 ? "" : "s");
}

std::string ReasonOfShare(const ClusterState& state, const AutoscalerOptions& options,
                          const ShareFacts& facts) {
  const ClusterJob& job = state.jobs[facts.job];
  const uint32_t workers = facts.workers;
  if (workers < job.min) {
    return WhyNone(state, job);
  }
  if (facts.running > job.max) {
    return fmt::format("it may have at most {}", CountWorkers(job.max));
  }
  std::string past_knee = fmt::format(
      "one more would add less than {:.0f} % of the first one's rows", 100 * options.knee);
  const bool at_knee = ThroughputAt(job, workers + 1) - ThroughputAt(job, workers) <
                       options.knee * ThroughputAt(job, 1);
  if (workers < facts.running) {
    return facts.services_need_room      ? "a service needs the room"
           : facts.higher_priority_grows ? "a job of a higher priority needs the room"
           : at_knee                     ? past_knee
                                         : "other jobs have their share";
  }
  if (workers > facts.running) {
    return "there is room";
  }
  if (workers >= job.max) {
    return "it has as many as it may have";
  }
  if (facts.wanted > workers) {
    return "there is room for more, if it lasts";
  }
  if (at_knee) {
    return past_knee;
  }
  const bool ends = job.rows_left && !job.throughput.empty() &&
                    *job.rows_left < ThroughputAt(job, workers) * options.payback_seconds;
  return ends ? "it ends before one more would have paid for its start"
              : "there is no room for more";
}

}  // namespace sluice::elastic
