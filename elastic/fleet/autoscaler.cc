#include "elastic/fleet/autoscaler.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <tuple>

#include "elastic/fleet/share_reason.h"
#include "elastic/fleet/sharing_plan.h"
#include "elastic/fleet/suspension_plan.h"

namespace sluice::elastic {
namespace {

// Starting a worker pays only if the job continues for long enough.
bool NearlyDone(const ClusterJob& job, uint32_t workers, const AutoscalerOptions& options) {
  if (!job.rows_left || job.throughput.empty() || workers == 0) {
    return false;
  }
  return *job.rows_left < ThroughputAt(job, workers) * options.payback_seconds;
}

// For how long something has been so, from decision to decision.
class Patience {
 public:
  Patience(TimePoint now, std::optional<TimePoint>& look_again)
      : now_(now), look_again_(look_again) {}

  // It is so: true if it has been for `seconds`.
  bool IsOver(const std::string& job, double seconds,
              const std::map<std::string, TimePoint>& before,
              std::map<std::string, TimePoint>& after) {
    const auto found = before.find(job);
    const TimePoint since =
        found == before.end() ? now_ : std::min(now_, found->second);  // a clock that was put back
    after[job] = since;
    const TimePoint due =
        since + std::chrono::duration_cast<TimePoint>(std::chrono::duration<double>(seconds));
    if (now_ < due) {
      look_again_ = std::min(look_again_.value_or(due), due);
    }
    return now_ >= due;
  }

 private:
  const TimePoint now_;
  std::optional<TimePoint>& look_again_;
};

std::vector<uint32_t> CountsOf(const ClusterState& state, const AutoscalerOptions& options,
                               const std::vector<uint32_t>& limits) {
  SharingPlan plan(state, options, limits);
  plan.Make();
  return plan.counts();
}

// Which jobs are to be without any process; their `limits` become 0.
std::vector<bool> ChooseSuspended(const ClusterState& state, const AutoscalerOptions& options,
                                  const std::vector<bool>& nearly_done,
                                  const AutoscalerHistory& history, Patience& patience,
                                  std::vector<uint32_t>& limits, AutoscalerHistory& next) {
  const size_t jobs = state.jobs.size();
  std::vector<bool> suspended(jobs);
  std::vector<uint32_t> with_all = limits;
  for (size_t i = 0; i < jobs; ++i) {
    suspended[i] = state.jobs[i].suspended;
    limits[i] = suspended[i] ? 0 : limits[i];
  }
  if (limits != with_all) {
    const std::vector<uint32_t> counts = CountsOf(state, options, with_all);
    for (size_t i = 0; i < jobs; ++i) {
      const ClusterJob& job = state.jobs[i];
      if (suspended[i] && counts[i] >= job.min &&
          patience.IsOver(job.name, options.suspension_seconds, history.fits_since,
                          next.fits_since)) {
        suspended[i] = false;
        limits[i] = with_all[i];
      }
    }
  }
  if (std::none_of(state.jobs.begin(), state.jobs.end(),
                   [](const ClusterJob& job) { return job.can_suspend && !job.suspended; })) {
    return suspended;
  }
  const std::vector<uint32_t> counts = CountsOf(state, options, limits);
  std::optional<size_t> first;  // of those that have no room
  for (size_t i = 0; i < jobs; ++i) {
    const ClusterJob& job = state.jobs[i];
    if (!suspended[i] && !nearly_done[i] && counts[i] < job.min &&
        patience.IsOver(job.name, options.suspension_seconds, history.blocked_since,
                        next.blocked_since) &&
        (!first || std::tuple(-job.priority, job.arrival) <
                       std::tuple(-state.jobs[*first].priority, state.jobs[*first].arrival))) {
      first = i;
    }
  }
  if (first) {
    for (const size_t i : SuspendFor(*first, state, options, limits, nearly_done)) {
      suspended[i] = true;
      limits[i] = 0;
    }
  }
  return suspended;
}

constexpr char kSuspended[] =
    "suspended: a job of a higher priority needs the room; it goes on from its checkpoint when "
    "there is some";

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
    decision.targets[i].reason =
        decision.targets[i].suspend ? kSuspended : ReasonOfShare(state, options, facts);
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
  ScalingDecision decision;
  Patience patience(now, decision.look_again);
  std::vector<uint32_t> limits(jobs);
  std::vector<bool> nearly_done(jobs);
  for (size_t i = 0; i < jobs; ++i) {
    const ClusterJob& job = state.jobs[i];
    nearly_done[i] = NearlyDone(job, running[i], options);
    limits[i] = nearly_done[i] ? std::min(running[i], job.max) : job.max;
  }
  const std::vector<bool> suspended =
      ChooseSuspended(state, options, nearly_done, history, patience, limits, decision.history);
  // First the plan that all jobs would like; then without the jobs that have not waited long
  // enough.
  SharingPlan wanted(state, options, limits);
  wanted.Make();
  // What was granted before has waited already, and is not taken back because it starts slowly.
  std::vector<uint32_t> held(jobs);
  for (size_t i = 0; i < jobs; ++i) {
    held[i] = std::max(running[i], std::min(state.jobs[i].granted, wanted.counts()[i]));
  }
  bool impatient = false;
  for (size_t i = 0; i < jobs; ++i) {
    const ClusterJob& job = state.jobs[i];
    limits[i] = wanted.counts()[i];
    if (held[i] < job.min || wanted.counts()[i] <= held[i]) {
      continue;
    }
    if (!patience.IsOver(job.name, options.hysteresis_seconds, history.wants_more_since,
                         decision.history.wants_more_since)) {
      limits[i] = held[i];
      impatient = true;
    }
  }
  // Workers that an impatient job does not get yet go to no other job: a job that would have to
  // give workers up for it keeps them. A job that has fewer than its smallest number, and cannot
  // get it, keeps none.
  for (size_t i = 0; i < jobs && impatient; ++i) {
    if (held[i] >= state.jobs[i].min && !suspended[i]) {
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
    decision.targets.push_back({plan.counts()[i], request, {}, suspended[i]});
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
