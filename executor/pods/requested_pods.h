#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "k8s/pod_request.h"
#include "k8s/training_job.h"

namespace sluice::plan {
class Pods;
class Strategy;
}  // namespace sluice::plan

namespace sluice::executor {

// A plan's requests for a job's pods, in the form that pods are built from. `workers`, `servers`:
// largest numbers of them, of which a share may have high priority. An error if the plan is
// damaged.
Result<k8s::PodRequest> RequestedPods(const plan::Pods& pods, uint32_t workers, uint32_t servers);

// Says in the job's object what its pods request at least, for whoever plans while it has none.
void DescribeRequests(const k8s::PodRequest& request, const plan::Strategy& strategy,
                      k8s::TrainingJobSpec& spec);

// How many parameter servers the plan's job has.
uint32_t ServersOf(const plan::Strategy& strategy);

// Whether the folder is on one of the volumes that the plan requests.
bool RequestsFolder(const plan::Pods& pods, std::string_view folder);

}  // namespace sluice::executor
