#pragma once

#include <cstdint>

#include "elastic/fleet/fleet.h"
#include "k8s/pod_request.h"

namespace sluice::plan {
class TrainPlan;
}

namespace sluice::executor {

// The memory that a job's pod of that role requests and may use where nobody says it, from what its
// process is estimated to take; none if the plan has no estimate. The limit has room for what the
// estimate cannot know: rows and parameters of processes that are lost later. Pure.
k8s::PodMemory MemoryOf(elastic::Role role, const plan::TrainPlan& plan);

// Bytes that a master takes. Pure.
int64_t MemoryOfMaster(const plan::TrainPlan& plan);
// The same for a master for which that was estimated; 0: none.
k8s::PodMemory WithRoom(int64_t bytes);

}  // namespace sluice::executor
