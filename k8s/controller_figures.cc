#include "k8s/controller_figures.h"

#include <algorithm>
#include <utility>

#include "elastic/fleet/forecast.h"

namespace sluice::k8s {

void ControllerFigures::OnDecision(const ClusterView::Snapshot& snapshot,
                                   const elastic::ScalingDecision& decision,
                                   const std::map<size_t, Grant>& changed, TimePoint begun,
                                   double seconds) {
  decision_seconds.Add(seconds);
  std::map<std::string, TimePoint> waiting;
  for (const std::string& uid : snapshot.waiting_services) {
    const auto since = waiting_since_.find(uid);
    waiting[uid] = since == waiting_since_.end() ? begun : since->second;
  }
  for (const auto& [uid, since] : waiting_since_) {
    if (!waiting.contains(uid)) {
      pending_seconds.Add(std::max(0.0, SecondsBetween(since, begun)));
    }
  }
  waiting_since_ = std::move(waiting);
  waiting_pods = static_cast<uint32_t>(waiting_since_.size());

  nodes = static_cast<uint32_t>(snapshot.state.nodes.size());
  cpu = services_cpu = jobs_cpu = 0;
  for (const elastic::NodeUse& node : elastic::UseOfNodes(snapshot.state)) {
    cpu += node.capacity.cpu;
    services_cpu += node.services.cpu;
    jobs_cpu += node.jobs.cpu;
  }
  jobs.clear();
  for (size_t i = 0; i < snapshot.jobs.size(); ++i) {
    const ClusterView::Job& job = snapshot.jobs[i];
    const auto grant = changed.find(i);
    const uint32_t granted = grant != changed.end() ? grant->second.workers
                             : job.grant            ? job.grant->workers
                                                    : decision.targets[i].workers;
    jobs.push_back({job.namespace_name, job.name, granted, job.running});
  }
}

void ControllerFigures::Forget() {
  waiting_since_.clear();
  nodes = waiting_pods = 0;
  cpu = services_cpu = jobs_cpu = 0;
  jobs.clear();
}

}  // namespace sluice::k8s
