#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "k8s/pod_request.h"

namespace sluice::plan {
class Pods;
class Strategy;
}  // namespace sluice::plan

namespace sluice::executor {

// A plan's requests for a job's pods, in the form that pods are built from. `workers`, `servers`:
// largest numbers of them, of which a share may have high priority. An error if the plan is
// damaged.
Result<k8s::PodRequest> RequestedPods(const plan::Pods& pods, uint32_t workers, uint32_t servers);

// How many parameter servers the plan's job has.
uint32_t ServersOf(const plan::Strategy& strategy);

// Whether the folder is on one of the volumes that the plan requests.
bool RequestsFolder(const plan::Pods& pods, std::string_view folder);

}  // namespace sluice::executor
