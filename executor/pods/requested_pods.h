#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "k8s/pod_request.h"

namespace sluice::plan {
class Pods;
}

namespace sluice::executor {

// What a plan asks of a job's pods, as those are built. `workers`, `servers`: how many there are at
// most, of which a share may be of high priority. An error where the plan is damaged.
Result<k8s::PodRequest> RequestedPods(const plan::Pods& pods, uint32_t workers, uint32_t servers);

// Whether one of the volumes that the plan asks for holds the folder.
bool AsksForFolder(const plan::Pods& pods, std::string_view folder);

}  // namespace sluice::executor
