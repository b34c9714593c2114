#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "elastic/fleet/autoscaler.h"

namespace sluice::elastic {

// The jobs of lower priority that have to be without any process for `job`, which has no room for
// its smallest number of workers, to get them: as few as possible, the lowest first, none that is
// nearly done. Empty: that would not help. `limits`: of each job's workers. Pure.
std::vector<size_t> SuspendFor(size_t job, const ClusterState& state,
                               const AutoscalerOptions& options,
                               const std::vector<uint32_t>& limits,
                               const std::vector<bool>& nearly_done);

}  // namespace sluice::elastic
