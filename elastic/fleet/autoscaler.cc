#include "elastic/fleet/autoscaler.h"

#include <algorithm>

#include "elastic/fleet/share_reason.h"
#include "elastic/fleet/sharing_plan.h"

namespace sluice::elastic {
namespace {

// Starting a worker pays only if the job continues for long enough.
bool NearlyDone(const ClusterJob& job, uint32_t workers, const AutoscalerOptions& options) {
  if (!job.rows_left || job.throughput.empty() || workers == 0) {
    return false;
  }
  return *job.rows_left < ThroughputAt(job, workers) * options.payback_seconds;
}

// The reasons of all jobs' numbers of workers.
void Explain(const ClusterState& state, const AutoscalerOptions& options,
             const std::vector<uint32_t>& running, const SharingPlan& wanted,
             const SharingPlan& plan, ScalingDecision& decision) {
  const bool services = std::any_of(plan.puts().begin(), plan.puts().end(), [&](const auto& put) {
    return state.processes[put.first].job == ClusterProcess::kNone;
  });
  for (size_t i = 0; i < state.jobs.size(); ++i) {
    ShareFacts facts{i, running[i], plan.counts()[i], wanted.counts()[i], services, false};
    for (size_t other = 0; other < state.jobs.size(); ++other) {
      facts.higher_priority_grows |= state.jobs[other].priority > state.jobs[i].priority &&
                                     plan.counts()[other] > running[other];
    }
    decision.targets[i].reason = ReasonOfShare(state, options, facts);
  }
}

}  // namespace

ScalingDecision Autoscale(const ClusterState& state, const AutoscalerOptions& options,
                          const AutoscalerHistory& history, TimePoint now) {
  const size_t jobs = state.jobs.size();
  std::vector<uint32_t> running(jobs, 0);
  for (const ClusterProcess& process : state.processes) {
    if (process.worker && !process.terminating) {
      ++running[static_cast<size_t>(process.job)];
    }
  }
  std::vector<uint32_t> limits(jobs);
  for (size_t i = 0; i < jobs; ++i) {
    const ClusterJob& job = state.jobs[i];
    limits[i] = NearlyDone(job, running[i], options) ? std::min(running[i], job.max) : job.max;
  }
  // First the plan that all jobs would like; then without the jobs that have not waited long
  // enough.
  SharingPlan wanted(state, options, limits);
  wanted.Make();
  // What was granted before has waited already, and is not taken back because it starts slowly.
  std::vector<uint32_t> held(jobs);
  for (size_t i = 0; i < jobs; ++i) {
    held[i] = std::max(running[i], std::min(state.jobs[i].granted, wanted.counts()[i]));
  }
  ScalingDecision decision;
  const auto patience = std::chrono::duration_cast<TimePoint>(
      std::chrono::duration<double>(options.hysteresis_seconds));
  for (size_t i = 0; i < jobs; ++i) {
    const ClusterJob& job = state.jobs[i];
    limits[i] = wanted.counts()[i];
    if (held[i] < job.min || wanted.counts()[i] <= held[i]) {
      continue;
    }
    const auto found = history.wants_more_since.find(job.name);
    const TimePoint since = found == history.wants_more_since.end()
                                ? now
                                : std::min(now, found->second);  // a clock that was put back
    decision.history.wants_more_since[job.name] = since;
    if (now - since < patience) {
      limits[i] = held[i];
      decision.look_again =
          std::min(decision.look_again.value_or(since + patience), since + patience);
    }
  }
  // Workers that an impatient job does not get yet go to no other job: a job that would have to
  // give workers up for it keeps them. A job that has fewer than its smallest number, and cannot
  // get it, keeps none.
  for (size_t i = 0; i < jobs && decision.look_again; ++i) {
    if (held[i] >= state.jobs[i].min) {
      limits[i] = std::max(limits[i], std::min(held[i], state.jobs[i].max));
    }
  }
  SharingPlan plan(state, options, limits);
  plan.Make();

  std::vector<Capacity> room;  // really there
  for (const ClusterNode& node : state.nodes) {
    room.push_back(node.capacity);
  }
  for (size_t i = 0; i < state.processes.size(); ++i) {
    const ClusterProcess& process = state.processes[i];
    if (process.node != ClusterProcess::kNone) {
      room[static_cast<size_t>(process.node)] -= process.request;
      if (process.worker && !process.terminating && !plan.kept(i)) {
        decision.victims.push_back(i);
      }
    }
  }
  const auto take = [&room](int node, const Capacity& request) {
    Capacity& there = room[static_cast<size_t>(node)];
    const bool fits = there.Fits(request);
    if (fits) {
      there -= request;
    }
    return fits;
  };
  for (const auto& [process, node] : plan.puts()) {
    if (take(node, state.processes[process].request)) {
      decision.puts.emplace_back(process, node);
    }
  }
  for (size_t i = 0; i < jobs; ++i) {
    const Capacity request = plan.Request(i);
    decision.targets.push_back({plan.counts()[i], request, {}});
    for (const int node : plan.starts()[i]) {
      if (take(node, request)) {
        decision.starts.push_back({static_cast<int>(i), node});
      }
    }
  }
  Explain(state, options, running, wanted, plan, decision);
  return decision;
}

}  // namespace sluice::elastic
