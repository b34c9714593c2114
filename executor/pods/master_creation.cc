#include "executor/pods/master_creation.h"

#include <utility>

#include "executor/local/job_process.pb.h"
#include "executor/pods/job_objects.h"
#include "executor/pods/pod_job.h"
#include "executor/pods/pod_job.pb.h"
#include "executor/pods/pod_memory.h"
#include "executor/pods/requested_pods.h"
#include "k8s/api_verbs.h"
#include "k8s/service_spec.h"

namespace sluice::executor {
namespace {

// The statement's requests, and the template when the job began.
Status TakeShape(const PodJobConfig& config, const KeptJob::Job& job, k8s::PodShape& shape) {
  shape.image = job.image;
  shape.owner = OwnerOf(config);
  shape.training_job = config.training_job();
  shape.template_json = config.template_json();
  shape.priority_class = config.priority_class();
  ASSIGN_OR_RETURN(shape.request, RequestedPods(config.pods(), 1, 1));
  shape.request.roles[elastic::Role::kMaster].estimate = WithRoom(config.master_memory());
  return OkStatus();
}

}  // namespace

MasterCreation CreateMaster(k8s::ApiClient& client, k8s::PodShape shape, const KeptJob::Job& job,
                            int64_t number, const std::stop_token& stop) {
  const k8s::ObjectAnswer led = k8s::ChangeObject(
      client, k8s::kServices, shape.namespace_name, job.name,
      [number](const k8s::Object& service) { return k8s::LeadTo(service, number); }, stop);
  if (!led.ok()) {
    return {led.fault, led.status};
  }
  PodJobConfig config;
  JobSecrets secrets;
  const k8s::ObjectAnswer secret =
      ReadJobSecret(client, shape.namespace_name, job.secret, config, secrets, stop);
  if (!secret.ok()) {
    return {secret.fault, secret.status, secret.fault != k8s::Fault::kNotFound};
  }
  const Status shaped = TakeShape(config, job, shape);
  if (!shaped.ok()) {
    return {k8s::Fault::kInvalid, shaped};
  }
  elastic::ProcessSpec spec;
  spec.role = elastic::Role::kMaster;
  spec.name = MasterPodName(job.name, number);
  spec.resources.cpu = kMasterCpu;
  spec.incarnation = elastic::Incarnation(static_cast<uint64_t>(number));
  const k8s::PodIdentity identity{job.uid, spec.role, spec.incarnation, {}};
  const Result<std::string> pod = k8s::BuildPod(shape, identity, spec, job.secret);
  if (!pod.ok()) {
    return {k8s::Fault::kInvalid, pod.status()};
  }
  const k8s::ObjectAnswer made =
      k8s::CreateAll(client, {{k8s::kPods, shape.namespace_name, *pod}}, stop).at(0);
  return {made.fault, made.status};
}

}  // namespace sluice::executor
