#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "elastic/fleet/fleet.h"
#include "k8s/quantity/quantity.h"

namespace sluice::k8s {

// Classes created by `sluice k8s manifests`: of gateways and the controller, and of the pods of
// jobs. The latter are below -10, where node autoscalers neither add a node for a pod nor keep one:
// pods use idle capacity.
inline constexpr std::string_view kControlPriorityClass = "sluice-control";
inline constexpr std::string_view kHighPriorityClass = "sluice-high";
inline constexpr std::string_view kLowPriorityClass = "sluice-low";

// Requests and limits of the processes of one role: cpu, memory, nvidia.com/gpu.
struct PodResources {
  std::map<std::string, Quantity> requests, limits;

  bool operator==(const PodResources&) const = default;
};

// Bytes that a process takes as far as is known, and at most. 0: it is not known.
struct PodMemory {
  int64_t request = 0, limit = 0;

  bool operator==(const PodMemory&) const = default;
};

// A PersistentVolumeClaim and nothing else: users may not mount paths of the node.
struct PodVolume {
  std::string claim;
  std::string mount_path;
  std::string sub_path;
  bool read_only = false;

  bool operator==(const PodVolume&) const = default;
};

// The share of a role's pods in the high class: 1 all, 0 none, 0.5 every second.
struct PodPriority {
  bool given = false;  // otherwise the template's class, or the cluster's default
  double high_share = 0;

  bool operator==(const PodPriority&) const = default;
};

// The requests of a statement's engine.* attributes, or of a TrainingJob, for the pods of one role.
struct RoleRequest {
  PodResources resources;
  PodPriority priority;
  uint32_t pods = 1;        // of these `priority` is a share
  PodMemory estimate = {};  // where nobody says how much memory they get

  bool operator==(const RoleRequest&) const = default;
};

struct PodRequest {
  std::string pull_policy;  // Always, IfNotPresent, Never; empty: Kubernetes' default
  std::vector<PodVolume> volumes;
  std::map<elastic::Role, RoleRequest> roles;

  // What is requested for the pods of a role; none was: an empty request.
  const RoleRequest& Of(elastic::Role role) const;

  bool operator==(const PodRequest&) const = default;
};

// The class of pod `index` of `request.pods` (later ones begin again at 0): as in ElasticDL, the
// share's pods are at both ends, so that of 10 with a share of 0.5 they are 0, 1, 2, 8 and 9.
// Empty: none is requested.
std::string_view PriorityClassOf(const RoleRequest& request, uint64_t index);

// The resources of a process for which the statement asks for `asked`. Memory that it asks for has
// a limit equal to the request, so that a process that exceeds it ends in a recognisable way;
// processors have no limit unless requested, so that idle ones are used. The memory of `given` is
// the minimum. All memory grows with `given.memory_factor`, after an end for lack of memory.
PodResources ResourcesOf(const RoleRequest& asked, const elastic::Resources& given);

}  // namespace sluice::k8s
