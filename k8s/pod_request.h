#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "elastic/fleet/fleet.h"
#include "k8s/quantity/quantity.h"

namespace sluice::k8s {

// Classes that `sluice k8s manifests` makes. Both lie below -10, where node autoscalers neither buy
// a machine for a pod nor keep one: what is idle is used.
inline constexpr std::string_view kHighPriorityClass = "sluice-high";
inline constexpr std::string_view kLowPriorityClass = "sluice-low";

// What the processes of one role ask for, and may not pass: cpu, memory, nvidia.com/gpu.
struct PodResources {
  std::map<std::string, Quantity> requests, limits;

  bool operator==(const PodResources&) const = default;
};

// A PersistentVolumeClaim; nothing else: a path of the node is no user's business.
struct PodVolume {
  std::string claim;
  std::string mount_path;
  std::string sub_path;
  bool read_only = false;

  bool operator==(const PodVolume&) const = default;
};

// Which share of a role's pods is of the high class: 1 all, 0 none, 0.5 every second.
struct PodPriority {
  bool given = false;  // else the template's class, or the cluster's default
  double high_share = 0;

  bool operator==(const PodPriority&) const = default;
};

// What a statement's engine.* attributes, or a TrainingJob, ask of the pods of one role.
struct RoleRequest {
  PodResources resources;
  PodPriority priority;
  uint32_t pods = 1;  // so many, of which `priority` is a share

  bool operator==(const RoleRequest&) const = default;
};

struct PodRequest {
  std::string pull_policy;  // Always, IfNotPresent, Never; empty: Kubernetes' default
  std::vector<PodVolume> volumes;
  std::map<elastic::Role, RoleRequest> roles;

  bool operator==(const PodRequest&) const = default;
};

// The class of pod `index` of `request.pods` (later ones begin again at 0): as ElasticDL does it,
// the share's pods lie at both ends, so that of 10 with a share of 0.5 those are 0, 1, 2, 8 and 9.
// Empty: none is asked for.
std::string_view PriorityClassOf(const RoleRequest& request, uint64_t index);

}  // namespace sluice::k8s
