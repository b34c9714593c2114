#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/histogram.h"
#include "elastic/fleet/autoscaler.h"
#include "k8s/cluster_view.h"

namespace sluice::k8s {

// What a controller's metrics say. Not thread-safe; pure.
struct ControllerFigures {
  // A decision about `snapshot`, begun at `begun`, and the grants that it changes.
  void OnDecision(const ClusterView::Snapshot& snapshot, const elastic::ScalingDecision& decision,
                  const std::map<size_t, Grant>& changed, TimePoint begun, double seconds);
  // Another controller acts: what is true at a time is no longer known.
  void Forget();

  bool leads = false;
  uint64_t grants = 0, failed_grants = 0;
  Histogram decision_seconds{{0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1}};
  // Of foreground pods that waited for room, until they had it or were gone.
  Histogram pending_seconds{{1, 3, 10, 30, 100, 300, 1000}};

  // As of the last decision.
  uint32_t nodes = 0, waiting_pods = 0;
  double cpu = 0, services_cpu = 0, jobs_cpu = 0;  // of all nodes: allocatable, and requested
  struct JobShare {
    std::string namespace_name, name;
    uint32_t granted = 0, running = 0;  // workers
  };
  std::vector<JobShare> jobs;  // those that share the cluster: a job that ends disappears

 private:
  std::map<std::string, TimePoint> waiting_since_;  // by uid
};

}  // namespace sluice::k8s
