#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "k8s/pod_request.h"
#include "k8s/pod_spec.h"
#include "k8s/training_job.h"

namespace sluice::plan {
class Pods;
class Strategy;
class TrainPlan;
}  // namespace sluice::plan

namespace sluice::executor {

class PodJobConfig;

// A statement's requests for a job's pods, in the form that pods are built from. `workers`,
// `servers`: largest numbers of them, of which a share may have high priority. An error if the plan
// is damaged.
Result<k8s::PodRequest> RequestedPods(const plan::Pods& pods, uint32_t workers, uint32_t servers);

// The same with the plan's estimates of memory, which count where neither the statement nor the
// template says any.
Result<k8s::PodRequest> RequestedPods(const plan::TrainPlan& plan, std::string_view template_json);

// What the pods of a job's workers and servers have in common. The same errors.
Result<k8s::PodShape> ShapeOf(const PodJobConfig& config, const plan::TrainPlan& plan);

// Says in the job's object what its pods request at least, for whoever plans while it has none.
void DescribeRequests(const k8s::PodRequest& request, const plan::Strategy& strategy,
                      k8s::TrainingJobSpec& spec);

// How many parameter servers, and at first how many workers, the plan's job has.
uint32_t ServersOf(const plan::Strategy& strategy);
uint32_t FirstWorkersOf(const plan::Strategy& strategy);

// Whether the folder is on one of the volumes that the plan requests.
bool RequestsFolder(const plan::Pods& pods, std::string_view folder);

}  // namespace sluice::executor
