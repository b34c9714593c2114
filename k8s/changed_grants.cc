#include "k8s/changed_grants.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace sluice::k8s {

std::map<size_t, Grant> ChangedGrants(const ClusterView::Snapshot& snapshot,
                                      const elastic::ScalingDecision& decision) {
  std::vector<uint32_t> starts(snapshot.jobs.size(), 0);
  for (const elastic::ScalingDecision::Start& start : decision.starts) {
    ++starts[static_cast<size_t>(start.job)];
  }
  std::vector<Grant> grants(snapshot.jobs.size());
  for (const elastic::ScalingDecision::Start& start : decision.starts) {
    std::vector<std::string>& nodes = grants[static_cast<size_t>(start.job)].nodes;
    const std::string& name = snapshot.state.nodes[static_cast<size_t>(start.node)].name;
    if (std::find(nodes.begin(), nodes.end(), name) == nodes.end()) {
      nodes.push_back(name);
    }
  }
  for (const size_t victim : decision.victims) {
    const elastic::ClusterProcess& process = snapshot.state.processes[victim];
    grants[static_cast<size_t>(process.job)].give_up.push_back(process.name);
  }
  std::map<size_t, Grant> changed;
  for (size_t i = 0; i < grants.size(); ++i) {
    const ClusterView::Job& job = snapshot.jobs[i];
    Grant& grant = grants[i];
    // A worker that has to move leaves before another one starts: its master ends none while it has
    // no more than it may have. At the job's minimum the other one starts first, if it may have one
    // more.
    const elastic::ClusterJob& limits = snapshot.state.jobs[i];
    grant.suspend = decision.targets[i].suspend;
    if (grant.suspend) {
      grant.give_up.clear();  // they stay until the checkpoint is written
    }
    const auto leave = static_cast<uint32_t>(grant.give_up.size());
    if (leave > 0 && starts[i] > 0 && job.running == limits.min && job.running < limits.max) {
      grant.give_up.clear();
      grant.workers = std::min(limits.max, job.running + std::min(leave, starts[i]));
    } else {
      grant.workers = std::min(decision.targets[i].workers,
                               leave > 0 ? job.running - leave : job.running + starts[i]);
    }
    if (limits.suspended && !grant.suspend) {
      grant.workers = decision.targets[i].workers;  // it asks for its workers when it runs again
    }
    if (!grant.suspend && job.running < limits.min && grant.workers < limits.min) {
      // Its first workers, which came with its master, stay where their room is being made.
      const uint32_t there = job.running + job.waiting;
      grant.workers = decision.targets[i].workers < limits.min
                          ? 0
                          : std::min(decision.targets[i].workers, there);
    }
    if (grant.suspend) {
      grant.workers = 0;
    }
    std::sort(grant.give_up.begin(), grant.give_up.end());
    grant.reason = decision.targets[i].reason;
    const bool waits = grant.workers == 0 && job.grant && job.grant->reason != grant.reason;
    if (!job.grant || job.grant->workers != grant.workers || waits ||
        job.grant->suspend != grant.suspend ||
        (!grant.give_up.empty() && job.grant->give_up != grant.give_up)) {
      changed.emplace(i, std::move(grant));
    }
  }
  return changed;
}

}  // namespace sluice::k8s
