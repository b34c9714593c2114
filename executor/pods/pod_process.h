#pragma once

#include <string>

#include "elastic/fleet/fleet.h"
#include "executor/pods/kubernetes_access.h"

namespace sluice::executor {

// The arguments of a pod's process: k8s::BuildPod.
struct PodPlace {
  std::string folder;   // contains the files `config` and `secret`
  std::string address;  // the pod's
  std::string node;
  std::string name;
  std::string number;  // a server's index; the incarnation of a worker, the term of a master
};

// The main function of `sluice master | worker | ps FOLDER ADDRESS NODE NAME NUMBER` in a pod.
// SIGTERM means eviction: no other process is stopped, and a master's job continues with the next
// one. Call it first in main, before any thread starts. Returns the exit code; 0 from a master: its
// job has ended, and its row says how.
int RunPod(elastic::Role role, const PodPlace& place, const KubernetesPlace& kubernetes);

}  // namespace sluice::executor
