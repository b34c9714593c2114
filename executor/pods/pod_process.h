#pragma once

#include <string>

#include "elastic/fleet/fleet.h"
#include "executor/pods/kubernetes_access.h"

namespace sluice::executor {

// What the arguments of a pod's process say: k8s::BuildPod.
struct PodPlace {
  std::string folder;   // that has the files `config` and `secret`
  std::string address;  // of the pod
  std::string node;
  std::string number;  // k8s::kIncarnationLabel
};

// The whole life of `sluice master | worker | ps FOLDER ADDRESS NODE NUMBER` in a pod. SIGTERM is
// an eviction: nobody else is stopped, and a master's job goes on with the next one. Call it first
// in main, before any thread is started. Returns the exit code; 0 of a master: its job has ended,
// and its row says how.
int RunPod(elastic::Role role, const PodPlace& place, const KubernetesPlace& kubernetes);

}  // namespace sluice::executor
