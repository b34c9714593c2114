#include "executor/pods/pod_forecast.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "executor/pods/pod_job.h"
#include "executor/pods/requested_pods.h"
#include "planner/plan.pb.h"

namespace sluice::executor {
namespace {

constexpr char kPlanned[] = "planned";

// A pod as its master, or for a master its keeper, would create it.
Result<k8s::PodFacts> PlannedPod(const plan::Strategy& strategy, const k8s::PodShape& shape,
                                 elastic::Role role, uint32_t index) {
  elastic::ProcessSpec spec;
  spec.role = role;
  spec.name = "planned-1";
  spec.resources.cpu = role == elastic::Role::kMaster ? kMasterCpu : strategy.cpu();
  spec.resources.memory_bytes = role == elastic::Role::kMaster ? 0 : strategy.memory_bytes();
  const k8s::PodIdentity identity{kPlanned, role, elastic::Incarnation(1),
                                  elastic::ServerId(index)};
  k8s::Object pod;
  ASSIGN_OR_RETURN(pod.json, k8s::BuildPod(shape, identity, spec, "planned"));
  pod.name = spec.name;
  pod.namespace_name = shape.namespace_name;
  pod.labels = k8s::LabelsOf(identity);
  return k8s::ReadPod(pod);
}

}  // namespace

Result<elastic::StartForecast> ForecastOnPods(const plan::TrainPlan& plan, k8s::PodShape shape,
                                              k8s::ClusterView view) {
  const plan::Strategy& strategy = plan.strategy();
  const uint32_t servers = ServersOf(strategy);
  k8s::TrainingJobSpec job;
  job.workers.min = std::max<uint32_t>(1, strategy.min_workers());
  job.workers.max = std::max({1U, strategy.workers(), strategy.max_workers()});
  job.priority = strategy.priority();
  ASSIGN_OR_RETURN(shape.request, RequestedPods(plan, shape.template_json));
  std::vector<k8s::PodFacts> pods(2);
  ASSIGN_OR_RETURN(pods[0], PlannedPod(strategy, shape, elastic::Role::kWorker, 0));
  ASSIGN_OR_RETURN(pods[1], PlannedPod(strategy, shape, elastic::Role::kMaster, 0));
  for (uint32_t i = 0; i < servers; ++i) {
    ASSIGN_OR_RETURN(k8s::PodFacts server,
                     PlannedPod(strategy, shape, elastic::Role::kParameterServer, i));
    pods.push_back(std::move(server));
  }
  view.Plan(kPlanned, job, std::move(pods));
  k8s::ClusterView::Snapshot snapshot = view.Make();
  const auto planned =
      std::find_if(snapshot.state.jobs.begin(), snapshot.state.jobs.end(),
                   [](const elastic::ClusterJob& each) { return each.name == kPlanned; });
  const auto index = static_cast<size_t>(planned - snapshot.state.jobs.begin());
  const uint32_t allowed = planned->max;  // by quotas
  elastic::StartForecast forecast =
      elastic::ForecastStart(std::move(snapshot.state), index, {}, TimePoint());
  forecast.wanted = *job.workers.max;
  if (allowed < forecast.wanted && forecast.soon == allowed) {
    forecast.reason = "a ResourceQuota allows no more";
  }
  return forecast;
}

}  // namespace sluice::executor
