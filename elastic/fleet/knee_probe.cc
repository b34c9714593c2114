#include "elastic/fleet/knee_probe.h"

#include <algorithm>
#include <chrono>

#include "elastic/fleet/autoscaler.h"
#include "elastic/fleet/sharing_plan.h"

namespace sluice::elastic {
namespace {

// Of fewer workers a quarter is not worth the starts.
constexpr uint32_t kFewest = 4;
// In this time a number of workers is measured, or something keeps it from being so.
constexpr double kProbeSeconds = 20;
// A job that is over sooner gains nothing any more.
constexpr double kWorthSeconds = 120;
// Of a concave curve all that lies below a straight part is straight, too: beyond the fewest
// workers that were measured, each has to add less than this part of what one of these does.
constexpr double kBend = 0.8;

bool IsWorthIt(const ClusterJob& job, uint32_t workers) {
  return !job.rows_left || *job.rows_left >= ThroughputAt(job, workers) * kWorthSeconds;
}

// A single number says nothing.
bool MayBendBelow(const Throughput& curve) {
  if (curve.size() < 2) {
    return !curve.empty();
  }
  const auto& [fewest, rate] = curve[0];
  const auto& [more, rate_of_more] = curve[1];
  return (rate_of_more - rate) / (more - fewest) < kBend * rate / fewest;
}

// It has what it was granted and what it would get again, and was measured with no fewer.
bool IsSettledAtItsFewest(const ClusterJob& job, uint32_t running, uint32_t count) {
  return !job.suspended && running >= kFewest && running > job.min &&
         job.measured_from == running && job.granted == running && count == running &&
         MayBendBelow(job.throughput) && job.throughput.front().first == running;
}

std::optional<LimitedJob> Continue(const ClusterState& state, const std::vector<uint32_t>& counts,
                                   const KneeProbe& probe, TimePoint now) {
  const auto job = std::find_if(state.jobs.begin(), state.jobs.end(),
                                [&](const ClusterJob& each) { return each.name == probe.job; });
  const auto index = static_cast<size_t>(job - state.jobs.begin());
  if (job == state.jobs.end() || job->suspended || job->measured_from <= probe.workers ||
      counts[index] <= probe.workers || now < probe.since ||
      SecondsBetween(probe.since, now) >= kProbeSeconds) {
    return std::nullopt;
  }
  return LimitedJob{index, probe.workers};
}

}  // namespace

std::optional<LimitedJob> ChooseProbe(const ClusterState& state, const AutoscalerOptions& options,
                                      const std::vector<uint32_t>& running,
                                      const std::vector<uint32_t>& limits,
                                      const std::vector<uint32_t>& counts, const KneeProbes& before,
                                      TimePoint now, KneeProbes& after) {
  for (const ClusterJob& job : state.jobs) {
    const auto tried = before.tried_at.find(job.name);
    if (tried != before.tried_at.end()) {
      after.tried_at.insert(*tried);
    }
  }
  if (before.running.has_value()) {
    const std::optional<LimitedJob> goes_on = Continue(state, counts, *before.running, now);
    after.running = goes_on.has_value() ? before.running : std::nullopt;
    return goes_on;
  }
  // Another one first each second: one plan a decision is enough, and it may be in vain.
  const size_t jobs = state.jobs.size();
  const auto second = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  for (size_t k = 0; k < jobs; ++k) {
    const size_t i = (static_cast<size_t>(std::max<int64_t>(0, second)) + k) % jobs;
    const ClusterJob& job = state.jobs[i];
    const auto tried = after.tried_at.find(job.name);
    if (!IsSettledAtItsFewest(job, running[i], counts[i]) || !IsWorthIt(job, running[i]) ||
        (tried != after.tried_at.end() && tried->second <= running[i])) {
      continue;
    }
    std::vector<size_t> want_more;  // of no lower priority
    for (size_t other = 0; other < jobs; ++other) {
      if (other != i && counts[other] < limits[other] &&
          state.jobs[other].priority >= job.priority) {
        want_more.push_back(other);
      }
    }
    if (want_more.empty()) {
      continue;
    }
    const uint32_t fewer = std::max(job.min, running[i] - running[i] / 4);
    std::vector<uint32_t> with_fewer = limits;
    with_fewer[i] = fewer;
    SharingPlan plan(state, options, with_fewer);
    plan.Make();
    if (std::none_of(want_more.begin(), want_more.end(),
                     [&](size_t other) { return plan.counts()[other] > counts[other]; })) {
      return std::nullopt;
    }
    after.tried_at[job.name] = running[i];
    after.running = KneeProbe{job.name, fewer, now};
    return LimitedJob{i, fewer};
  }
  return std::nullopt;
}

}  // namespace sluice::elastic
