#pragma once

#include <stop_token>

#include "base/status.h"
#include "k8s/api_client.h"
#include "k8s/cluster_view.h"

namespace sluice::k8s {

// The cluster as it is now: lists the nodes, and the pods, TrainingJobs and quotas of all
// namespaces. kPermissionDenied names every right that the account lacks: "list nodes, list pods".
Result<ClusterView> ListCluster(ApiClient& client, const std::stop_token& stop);

}  // namespace sluice::k8s
