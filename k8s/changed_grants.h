#pragma once

#include <cstddef>
#include <map>

#include "elastic/fleet/autoscaler.h"
#include "k8s/cluster_view.h"
#include "k8s/training_job_status.h"

namespace sluice::k8s {

// What the controller writes after a decision of the autoscaler: the grants that differ from the
// current ones, by index of `snapshot.jobs`, in an order in which a job never gives up what it
// cannot do without. A job that does not have its minimum yet gets it as a whole or waits with 0,
// or, while room for the minimum is being made, with the workers that it has. Pure.
std::map<size_t, Grant> ChangedGrants(const ClusterView::Snapshot& snapshot,
                                      const elastic::ScalingDecision& decision);

}  // namespace sluice::k8s
