#pragma once

#include <map>
#include <string>

#include "k8s/cluster_objects.h"
#include "k8s/cluster_view.h"

namespace sluice::k8s {

// Weighs the jobs so that those of a namespace have its share together, however many they are: the
// largest that one of its quotas (by uid) says, or 1. Pure.
void ShareByNamespaces(const std::map<std::string, QuotaFacts>& quotas,
                       ClusterView::Snapshot& snapshot);

}  // namespace sluice::k8s
