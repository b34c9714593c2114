#pragma once

#include <cstdint>
#include <string>

#include "k8s/object.h"
#include "k8s/pod_spec.h"

namespace sluice::k8s {

// Kubernetes 1.21 and later; before 1.25 also v1beta1, the only version of 1.20.
inline constexpr Resource kDisruptionBudgets{"policy", "v1", "poddisruptionbudgets"};
inline constexpr Resource kOldDisruptionBudgets{"policy", "v1beta1", "poddisruptionbudgets"};

// Makes a drain of nodes evict a job's parameter servers one after the other, not a primary and its
// backup. A number, not a share, since Kubernetes counts shares only for pods of a controller.
// `available`: so many of them stay. Pure.
std::string BuildDisruptionBudget(const Resource& kind, const std::string& namespace_name,
                                  const std::string& name, const Owner& owner,
                                  const std::string& job_uid, uint32_t available);
// A merge patch for another number.
std::string DisruptionBudgetPatch(uint32_t available);

}  // namespace sluice::k8s
