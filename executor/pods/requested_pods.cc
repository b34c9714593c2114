#include "executor/pods/requested_pods.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "executor/pods/pod_job.h"
#include "executor/pods/pod_job.pb.h"
#include "executor/pods/pod_memory.h"
#include "k8s/pod_template.h"
#include "planner/plan.pb.h"

namespace sluice::executor {
namespace {

Result<std::map<std::string, k8s::Quantity>> ReadAmounts(
    const google::protobuf::RepeatedPtrField<plan::PodResource>& resources) {
  std::map<std::string, k8s::Quantity> amounts;
  for (const plan::PodResource& resource : resources) {
    ASSIGN_OR_RETURN(amounts[resource.name()], k8s::ParseQuantity(resource.amount()));
  }
  return amounts;
}

Result<k8s::RoleRequest> ReadRole(const plan::RolePods& role, uint32_t pods) {
  k8s::RoleRequest request;
  ASSIGN_OR_RETURN(request.resources.requests, ReadAmounts(role.requests()));
  ASSIGN_OR_RETURN(request.resources.limits, ReadAmounts(role.limits()));
  request.priority = {role.has_high_share(), role.high_share()};
  request.pods = std::max<uint32_t>(1, pods);
  return request;
}

}  // namespace

Result<k8s::PodRequest> RequestedPods(const plan::Pods& pods, uint32_t workers, uint32_t servers) {
  k8s::PodRequest request;
  request.pull_policy = pods.image_pull_policy();
  for (const plan::Pods::Volume& volume : pods.volumes()) {
    request.volumes.push_back(
        {volume.claim(), volume.mount_path(), volume.sub_path(), volume.read_only()});
  }
  ASSIGN_OR_RETURN(request.roles[elastic::Role::kMaster], ReadRole(pods.master(), 1));
  ASSIGN_OR_RETURN(request.roles[elastic::Role::kWorker], ReadRole(pods.workers(), workers));
  ASSIGN_OR_RETURN(request.roles[elastic::Role::kParameterServer],
                   ReadRole(pods.servers(), servers));
  return request;
}

Result<k8s::PodRequest> RequestedPods(const plan::TrainPlan& plan, std::string_view template_json) {
  const plan::Strategy& strategy = plan.strategy();
  ASSIGN_OR_RETURN(
      k8s::PodRequest request,
      RequestedPods(strategy.pods(), std::max(strategy.workers(), strategy.max_workers()),
                    ServersOf(strategy)));
  if (!k8s::GivesMemory(template_json)) {
    for (auto& [role, asked] : request.roles) {
      asked.estimate = MemoryOf(role, plan);
    }
  }
  return request;
}

Result<k8s::PodShape> ShapeOf(const PodJobConfig& config, const plan::TrainPlan& plan) {
  k8s::PodShape shape;
  shape.namespace_name = config.namespace_name();
  shape.owner = OwnerOf(config);
  shape.training_job = config.training_job();
  shape.image = config.image();
  shape.template_json = config.template_json();
  shape.priority_class = config.priority_class();
  ASSIGN_OR_RETURN(shape.request, RequestedPods(plan, shape.template_json));
  return shape;
}

void DescribeRequests(const k8s::PodRequest& request, const plan::Strategy& strategy,
                      k8s::TrainingJobSpec& spec) {
  const elastic::Resources given{strategy.cpu(), strategy.memory_bytes()};
  for (const auto& [role, processes, resources] :
       {std::tuple(elastic::Role::kMaster, &spec.master, elastic::Resources{kMasterCpu}),
        {elastic::Role::kWorker, &spec.workers, given},
        {elastic::Role::kParameterServer, &spec.servers, given}}) {
    const k8s::RoleRequest& asked = request.roles.at(role);
    processes->resources.requests = k8s::ResourcesOf(asked, resources).requests;
    processes->priority = asked.priority;
  }
}

uint32_t ServersOf(const plan::Strategy& strategy) {
  return strategy.kind() == plan::Strategy::ALL_REDUCE ? 0 : strategy.parameter_servers();
}

uint32_t FirstWorkersOf(const plan::Strategy& strategy) {
  return std::max({1U, strategy.workers(), strategy.min_workers()});
}

bool RequestsFolder(const plan::Pods& pods, std::string_view folder) {
  return std::any_of(pods.volumes().begin(), pods.volumes().end(), [folder](const auto& volume) {
    const std::string& path = volume.mount_path();
    return !volume.read_only() && folder.starts_with(path) &&
           (folder.size() == path.size() || path.back() == '/' || folder[path.size()] == '/');
  });
}

}  // namespace sluice::executor
