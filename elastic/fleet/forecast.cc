#include "elastic/fleet/forecast.h"

#include <fmt/core.h>

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
  for (size_t i = 0; i < state.jobs.size(); ++i) {
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
    use.processes += process.job == ClusterProcess::kNone ? 0 : 1;
  }
  return uses;
}

StartForecast ForecastStart(ClusterState state, size_t job, const AutoscalerOptions& options,
                            TimePoint now) {
  state.jobs[job].arrival = TimePoint::max();
  StartForecast forecast;
  forecast.wanted = state.jobs[job].max;
  ClusterState alone = state;
  for (size_t i = state.jobs.size(); i-- > 0;) {
    if (i != job) {
      Remove(alone, i);
    }
  }
  const ScalingDecision::Target most = DecideWith(alone, options, now).targets.front();
  forecast.reason = most.reason;
  forecast.useful = most.workers;
  if (!forecast.fits()) {
    return forecast;
  }
  forecast.useful = std::min(most.workers, MostUseful(state.jobs[job], options));
  ScalingDecision decision = DecideWith(state, options, now);
  forecast.soon = decision.targets[job].workers;
  forecast.now = static_cast<uint32_t>(
      std::count_if(decision.starts.begin(), decision.starts.end(),
                    [job](const auto& start) { return start.job == static_cast<int>(job); }));
  if (forecast.now < state.jobs[job].min) {
    forecast.now = 0;  // its smallest number or nothing
  }
  if (forecast.soon < state.jobs[job].min) {
    forecast.reason = decision.targets[job].reason;
  } else {
    forecast.reason = forecast.soon < forecast.useful ? "other jobs have their share"
                                                      : "there is no room for more";
  }
  double seconds = 0;
  while (decision.targets[job].workers < forecast.useful) {
    const auto first = FirstToEnd(state);
    if (!first) {
      return forecast;
    }
    seconds = std::max(seconds, first->second);
    Remove(state, first->first);
    job -= first->first < job ? 1 : 0;
    decision = DecideWith(state, options, now);
  }
  forecast.seconds_until_all = seconds;
  return forecast;
}

std::string DescribeStart(const StartForecast& forecast) {
  const std::string wanted =
      fmt::format("{} worker{}", forecast.wanted, forecast.wanted == 1 ? "" : "s");
  if (forecast.now >= forecast.wanted) {
    return wanted + " at once";
  }
  std::string text = forecast.now == 0 ? fmt::format("none of {} at once", wanted)
                                       : fmt::format("{} of {} at once", forecast.now, wanted);
  if (forecast.soon > forecast.now) {
    text += fmt::format(", {}{} when other jobs have made room", forecast.soon - forecast.now,
                        forecast.now == 0 ? "" : " more");
  }
  if (forecast.soon < forecast.wanted) {
    const uint32_t rest = forecast.wanted - forecast.soon;
    text += fmt::format("; {} wait{}: {}", rest, rest == 1 ? "s" : "", forecast.reason);
  }
  if (forecast.soon < forecast.useful && forecast.seconds_until_all) {
    text += fmt::format("; {} in about {:.0f} s",
                        forecast.useful == forecast.wanted ? fmt::format("all {}", forecast.wanted)
                                                           : fmt::format("{}", forecast.useful),
                        *forecast.seconds_until_all);
  }
  return text;
}

}  // namespace sluice::elastic
