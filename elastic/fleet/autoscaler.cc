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

// Each blocked job that is looked at needs plans of its own, and there may be many.
constexpr size_t kBlockedTried = 3;
constexpr double kNextTriedSeconds = 1;

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
    const TimePoint due = After(since, seconds);
    if (now_ < due) {
      look_again_ = std::min(look_again_.value_or(due), due);
    }
    return now_ >= due;
  }
  void LookAgainIn(double seconds) {
    const TimePoint due = After(now_, seconds);
    look_again_ = std::min(look_again_.value_or(due), due);
  }

 private:
  static TimePoint After(TimePoint when, double seconds) {
    return when + std::chrono::duration_cast<TimePoint>(std::chrono::duration<double>(seconds));
  }

  const TimePoint now_;
  std::optional<TimePoint>& look_again_;
};

std::vector<uint32_t> CountsOf(const ClusterState& state, const AutoscalerOptions& options,
                               const std::vector<uint32_t>& limits) {
  SharingPlan plan(state, options, limits);
  plan.Make();
  return plan.counts();
}

// Which jobs are to be without any process, and what they could have.
struct SuspendedJobs {
  std::vector<bool> jobs;
  // Workers of each job if every suspended one started again, and that plan's limits; empty: none
  // is suspended.
  std::vector<uint32_t> with_all, limits;
};

// The suspended jobs that do not start again yet: their `limits` become 0. Where one of them is
// about to start, no other job does. `held`: workers that each job has.
SuspendedJobs ChooseResumed(const ClusterState& state, const AutoscalerOptions& options,
                            const std::vector<uint32_t>& held, const AutoscalerHistory& history,
                            Patience& patience, std::vector<uint32_t>& limits,
                            AutoscalerHistory& next) {
  const size_t jobs = state.jobs.size();
  SuspendedJobs suspended{std::vector<bool>(jobs), {}, {}};
  if (std::none_of(state.jobs.begin(), state.jobs.end(),
                   [](const ClusterJob& job) { return job.suspended; })) {
    return suspended;
  }
  suspended.limits = limits;
  suspended.with_all = CountsOf(state, options, limits);
  bool about_to_start = false;
  for (size_t i = 0; i < jobs; ++i) {
    const ClusterJob& job = state.jobs[i];
    if (!job.suspended) {
      continue;
    }
    const bool fits = suspended.with_all[i] >= job.min;
    suspended.jobs[i] = !fits || !patience.IsOver(job.name, options.suspension_seconds,
                                                  history.fits_since, next.fits_since);
    about_to_start |= fits && suspended.jobs[i];
  }
  for (size_t i = 0; i < jobs; ++i) {
    if (suspended.jobs[i]) {
      limits[i] = 0;
    } else if (about_to_start) {
      const uint32_t has = held[i] >= state.jobs[i].min ? held[i] : 0;
      limits[i] = std::min(limits[i], std::max(has, suspended.with_all[i]));
    }
  }
  return suspended;
}

// Suspends jobs for the first of those that have waited for long and that this helps. `counts`: by
// the plan with these `limits`; those of the suspended jobs become 0. False: none.
bool SuspendOthers(const ClusterState& state, const AutoscalerOptions& options,
                   const std::vector<bool>& nearly_done, const std::vector<uint32_t>& counts,
                   const AutoscalerHistory& history, Patience& patience, TimePoint now,
                   SuspendedJobs& suspended, std::vector<uint32_t>& limits,
                   AutoscalerHistory& next) {
  if (std::none_of(state.jobs.begin(), state.jobs.end(),
                   [](const ClusterJob& job) { return job.can_suspend && !job.suspended; })) {
    return false;
  }
  std::vector<size_t> blocked;
  for (size_t i = 0; i < state.jobs.size(); ++i) {
    const ClusterJob& job = state.jobs[i];
    const bool has_no_room = suspended.jobs[i] ? suspended.with_all[i] < job.min
                                               : counts[i] < job.min && limits[i] >= job.min;
    if (has_no_room && !nearly_done[i] &&
        patience.IsOver(job.name, options.suspension_seconds, history.blocked_since,
                        next.blocked_since)) {
      blocked.push_back(i);
    }
  }
  std::sort(blocked.begin(), blocked.end(), [&state](size_t a, size_t b) {
    const ClusterJob& one = state.jobs[a];
    const ClusterJob& other = state.jobs[b];
    return std::tuple(other.priority, one.arrival, a) < std::tuple(one.priority, other.arrival, b);
  });
  size_t tried = 0;
  for (const size_t job : blocked) {
    if (++tried > kBlockedTried) {
      patience.LookAgainIn(kNextTriedSeconds);
      break;
    }
    std::vector<uint32_t> with_it = limits;
    with_it[job] = suspended.jobs[job] ? suspended.limits[job] : limits[job];
    const std::vector<size_t> others = SuspendFor(job, state, options, with_it, nearly_done);
    for (const size_t i : others) {
      suspended.jobs[i] = true;
      limits[i] = 0;
    }
    if (!others.empty()) {
      return true;
    }
    next.blocked_since[state.jobs[job].name] = now;  // the others' turn
  }
  return false;
}

GrowthCaution CautionOf(const ClusterJob& job, const AutoscalerHistory& history) {
  const auto found = history.growth.find(job.name);
  return found == history.growth.end() ? GrowthCaution() : found->second;
}

constexpr char kSuspended[] =
    "suspended: a job of a higher priority needs the room; it goes on from its checkpoint when "
    "there is some";

constexpr char kProbed[] =
    "it is measured with fewer workers for some seconds, since another job could use them";

// The reasons of all jobs' numbers of workers.
void Explain(const ClusterState& state, const AutoscalerOptions& options,
             const std::vector<uint32_t>& running, const SharingPlan& wanted,
             const SharingPlan& plan, const std::optional<LimitedJob>& probed,
             ScalingDecision& decision) {
  const bool services = std::any_of(plan.puts().begin(), plan.puts().end(), [&](const auto& put) {
    return state.processes[put.first].job == ClusterProcess::kNone;
  });
  for (size_t i = 0; i < state.jobs.size(); ++i) {
    ShareFacts facts{i, running[i], plan.counts()[i], wanted.counts()[i], services, false};
    for (size_t other = 0; other < state.jobs.size(); ++other) {
      facts.higher_priority_grows |= state.jobs[other].priority > state.jobs[i].priority &&
                                     plan.counts()[other] > running[other];
    }
    decision.targets[i].reason = decision.targets[i].suspend ? kSuspended
                                 : probed && probed->job == i && plan.counts()[i] == probed->workers
                                     ? kProbed
                                     : ReasonOfShare(state, options, facts);
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
  // What was granted before has waited already, and is not taken back because it starts slowly.
  const auto holds = [&](size_t i, uint32_t most) {
    return std::max(running[i], std::min(state.jobs[i].granted, most));
  };
  std::vector<uint32_t> held(jobs);
  for (size_t i = 0; i < jobs; ++i) {
    held[i] = holds(i, limits[i]);
  }
  SuspendedJobs suspended =
      ChooseResumed(state, options, held, history, patience, limits, decision.history);
  // First the plan that all jobs would like; then without the jobs that have not waited long
  // enough.
  std::optional<SharingPlan> wanted(std::in_place, state, options, limits);
  wanted->Make();
  if (SuspendOthers(state, options, nearly_done, wanted->counts(), history, patience, now,
                    suspended, limits, decision.history)) {
    wanted.emplace(state, options, limits);
    wanted->Make();
  }
  const std::optional<LimitedJob> probed =
      ChooseProbe(state, options, running, limits, wanted->counts(), history.probes, now,
                  decision.history.probes);
  if (probed.has_value()) {
    limits[probed->job] = std::min(limits[probed->job], probed->workers);
    wanted.emplace(state, options, limits);
    wanted->Make();
    patience.LookAgainIn(1);
  }
  for (size_t i = 0; i < jobs; ++i) {
    held[i] = holds(i, wanted->counts()[i]);
  }
  const GrowthWaits waits{options.first_wait_seconds, options.hysteresis_seconds,
                          options.payback_seconds};
  bool impatient = false;
  for (size_t i = 0; i < jobs; ++i) {
    const ClusterJob& job = state.jobs[i];
    limits[i] = wanted->counts()[i];
    if (held[i] < job.min || wanted->counts()[i] <= held[i]) {
      continue;
    }
    if (!patience.IsOver(job.name, WaitBeforeGrowth(CautionOf(job, history), waits, now),
                         history.wants_more_since, decision.history.wants_more_since)) {
      limits[i] = held[i];
      impatient = true;
    }
  }
  // Workers that an impatient job does not get yet go to no other job: a job that would have to
  // give workers up for it keeps them. A job that has fewer than its smallest number, and cannot
  // get it, keeps none.
  for (size_t i = 0; i < jobs && impatient; ++i) {
    if (held[i] >= state.jobs[i].min && !suspended.jobs[i]) {
      limits[i] = std::max(limits[i], std::min(held[i], state.jobs[i].max));
    }
  }
  SharingPlan plan(state, options, limits);
  plan.Make();
  for (size_t i = 0; i < jobs; ++i) {
    const ClusterJob& job = state.jobs[i];
    const bool gave_up = history.wants_more_since.contains(job.name) &&
                         !decision.history.wants_more_since.contains(job.name);
    decision.history.growth[job.name] =
        CautionAfter(CautionOf(job, history), std::max(running[i], job.granted), plan.counts()[i],
                     gave_up, waits, now);
  }

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
    decision.targets.push_back({plan.counts()[i], request, {}, suspended.jobs[i]});
    for (const int node : plan.starts()[i]) {
      if (take(node, request)) {
        decision.starts.push_back({static_cast<int>(i), node});
      }
    }
  }
  Explain(state, options, running, *wanted, plan, probed, decision);
  return decision;
}

}  // namespace sluice::elastic
