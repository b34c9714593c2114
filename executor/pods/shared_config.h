#pragma once

#include <string>

#include "base/status.h"
#include "elastic/fleet/fleet.h"
#include "executor/pods/pod_process.h"

namespace sluice::executor {

// All workers of a job mount one Secret, and all of its servers another: `SharedConfig` is a
// ProcessSpec's configuration without what distinguishes its process from these, and `ConfigIn`
// adds that again from the arguments of the pod. kInternal: the configuration is damaged.
Result<std::string> SharedConfig(const elastic::ProcessSpec& process);
Result<std::string> ConfigIn(const PodPlace& place, elastic::Role role, const std::string& shared);

}  // namespace sluice::executor
