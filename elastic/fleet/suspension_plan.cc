#include "elastic/fleet/suspension_plan.h"

#include <algorithm>
#include <tuple>

#include "elastic/fleet/sharing_plan.h"

namespace sluice::elastic {
namespace {

// Jobs that may be spared, though a higher one has to go: each takes a plan.
constexpr size_t kMostTries = 8;

bool WouldHelp(size_t job, const std::vector<size_t>& without, const ClusterState& state,
               const AutoscalerOptions& options, std::vector<uint32_t> limits) {
  std::vector<bool> is_gone(state.jobs.size(), false);
  for (const size_t gone : without) {
    limits[gone] = 0;
    is_gone[gone] = true;
  }
  ClusterState then{state.nodes, {}, state.jobs};
  then.processes.reserve(state.processes.size());
  for (const ClusterProcess& process : state.processes) {
    if (process.job == ClusterProcess::kNone || !is_gone[static_cast<size_t>(process.job)]) {
      then.processes.push_back(process);
    }
  }
  return SharingPlan(then, options, std::move(limits)).GivesMinimum(job);
}

}  // namespace

std::vector<size_t> SuspendFor(size_t job, const ClusterState& state,
                               const AutoscalerOptions& options,
                               const std::vector<uint32_t>& limits,
                               const std::vector<bool>& nearly_done) {
  std::vector<bool> has_places(state.jobs.size(), false);
  for (const ClusterProcess& process : state.processes) {
    if (process.job != ClusterProcess::kNone && process.node != ClusterProcess::kNone &&
        !process.terminating) {
      has_places[static_cast<size_t>(process.job)] = true;
    }
  }
  std::vector<size_t> candidates;
  for (size_t i = 0; i < state.jobs.size(); ++i) {
    const ClusterJob& other = state.jobs[i];
    if (other.can_suspend && !other.suspended && other.priority < state.jobs[job].priority &&
        has_places[i] && !nearly_done[i]) {
      candidates.push_back(i);
    }
  }
  std::stable_sort(candidates.begin(), candidates.end(), [&](size_t a, size_t b) {
    return std::tuple(state.jobs[a].priority, state.jobs[b].arrival) <
           std::tuple(state.jobs[b].priority, state.jobs[a].arrival);
  });
  const auto helps = [&](size_t count) {
    return WouldHelp(job,
                     {candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(count)},
                     state, options, limits);
  };
  if (candidates.empty() || !helps(candidates.size())) {
    return {};
  }
  // As few of the lowest as are enough: each plan takes time.
  size_t too_few = 0, enough = candidates.size();
  while (enough - too_few > 1) {
    const size_t middle = (too_few + enough) / 2;
    (helps(middle) ? enough : too_few) = middle;
  }
  std::vector<size_t> chosen(candidates.begin(),
                             candidates.begin() + static_cast<std::ptrdiff_t>(enough));
  // The last one is needed; of the lower ones perhaps not all.
  size_t tries = kMostTries;
  for (size_t i = chosen.size() - 1; i-- > 0 && tries-- > 0;) {
    std::vector<size_t> fewer = chosen;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    if (WouldHelp(job, fewer, state, options, limits)) {
      chosen = std::move(fewer);
    }
  }
  return chosen;
}

}  // namespace sluice::elastic
