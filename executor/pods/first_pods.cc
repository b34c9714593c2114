#include "executor/pods/first_pods.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/log.h"
#include "elastic/fleet/fleet.h"
#include "elastic/job/fleet_job.h"
#include "elastic/job/process_access.h"
#include "executor/pods/job_places.h"
#include "executor/pods/pod_job.h"
#include "executor/pods/pod_job.pb.h"
#include "executor/pods/requested_pods.h"
#include "k8s/pod_spec.h"
#include "k8s/shared_secrets.h"
#include "planner/plan.pb.h"

namespace sluice::executor {
namespace {

// True: all of them exist now.
bool CreateThem(k8s::ApiClient& client, const std::vector<k8s::Creation>& objects,
                const std::stop_token& stop) {
  const std::vector<k8s::ObjectAnswer> answers = k8s::CreateAll(client, objects, stop);
  const auto refused = std::find_if(answers.begin(), answers.end(),
                                    [](const k8s::ObjectAnswer& each) { return !each.ok(); });
  if (refused != answers.end()) {
    log::Info("the job's first pods are left to its master: {}", refused->status.message());
  }
  return refused == answers.end();
}

}  // namespace

Result<FirstPods> PlanFirstPods(const PodJobConfig& config, const plan::TrainPlan& plan,
                                const std::string& source_secret) {
  FirstPods first;
  if (plan.has_contest()) {
    return first;
  }
  const plan::Strategy& strategy = plan.strategy();
  ASSIGN_OR_RETURN(const k8s::PodShape shape, ShapeOf(config, plan));
  const elastic::JobEndpoint endpoint = EndpointOf(config);
  std::set<std::string> secrets;
  const auto add = [&](elastic::ProcessSpec spec, std::vector<k8s::Creation>& pods) -> Status {
    spec.config = elastic::AccessConfig(endpoint);
    spec.resources = {strategy.cpu(), strategy.memory_bytes()};
    spec.priority = strategy.priority();
    const k8s::PodIdentity identity{config.uid(), spec.role, spec.incarnation, spec.server_index};
    const std::string secret = k8s::SecretName(spec);
    if (secrets.insert(secret).second) {
      ASSIGN_OR_RETURN(std::string json, k8s::SharedSecrets::Build(shape, identity, spec));
      first.secrets.push_back({k8s::kSecrets, shape.namespace_name, std::move(json)});
    }
    ASSIGN_OR_RETURN(std::string json, k8s::BuildPod(shape, identity, spec, secret));
    pods.push_back({k8s::kPods, shape.namespace_name, std::move(json)});
    return OkStatus();
  };
  elastic::ServerId server = elastic::ServerId::First();
  for (uint32_t i = 0; i < ServersOf(strategy); ++i) {
    elastic::ProcessSpec spec;
    spec.role = elastic::Role::kParameterServer;
    spec.server_index = server++;
    spec.name = elastic::ServerName(endpoint.job_name, spec.server_index);
    RETURN_IF_ERROR(add(std::move(spec), first.servers));
  }
  const uint32_t workers = std::clamp(strategy.min_workers(), 1U, JobPlaces::kMaxWaiting);
  elastic::Incarnation incarnation = endpoint.first_incarnation;
  for (uint32_t i = 1; i <= workers; ++i) {
    elastic::ProcessSpec spec;
    spec.role = elastic::Role::kWorker;
    spec.incarnation = incarnation++;
    spec.name = elastic::WorkerName(endpoint.job_name, i);
    spec.secret = source_secret;
    RETURN_IF_ERROR(add(std::move(spec), first.workers));
  }
  return first;
}

// Servers first: a scheduler takes pods in this order, as a rule. Where a worker has the place that
// a server lacks all the same, the master makes it give way (JobPlaces).
void CreateFirstPods(k8s::ApiClient& client, const FirstPods& pods, const std::stop_token& stop) {
  static_cast<void>(CreateThem(client, pods.secrets, stop) &&
                    CreateThem(client, pods.servers, stop) &&
                    CreateThem(client, pods.workers, stop));
}

}  // namespace sluice::executor
