#include "executor/pods/job_objects.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/log.h"
#include "elastic/job/fleet_job.h"
#include "executor/local/job_process.pb.h"
#include "executor/pods/pod_job.h"
#include "executor/pods/pod_job.pb.h"
#include "executor/pods/pod_memory.h"
#include "executor/pods/requested_pods.h"
#include "k8s/pod_template.h"
#include "k8s/secret_content.h"
#include "k8s/service_spec.h"
#include "k8s/training_job.h"
#include "planner/plan.pb.h"

namespace sluice::executor {
namespace {

// How long a statement's TrainingJob is kept after it has ended.
constexpr int64_t kKeptSeconds = 3600;

k8s::TrainingJobSpec SpecOf(const NewJob& job, const std::string& image) {
  const plan::Strategy& strategy = job.config.plan().train().strategy();
  k8s::TrainingJobSpec spec;
  spec.statement = job.statement;
  spec.source_key = "config";
  spec.workers.min = std::max<uint32_t>(1, strategy.min_workers());
  spec.workers.max = std::max({1U, strategy.workers(), strategy.max_workers()});
  spec.servers.min = strategy.parameter_servers();
  spec.servers.max = std::max(strategy.parameter_servers(), strategy.max_parameter_servers());
  spec.priority = strategy.priority();
  spec.template_name = strategy.pods().template_name();
  spec.image = image;
  spec.pull_policy = strategy.pods().image_pull_policy();
  spec.ttl_seconds_after_finished = kKeptSeconds;
  return spec;
}

// The TrainingJob that asks for the job, or a new one for the statement.
Result<k8s::Owner> TakeOwner(k8s::ApiClient& client, const JobPlace& place, const NewJob& job,
                             const KeptJob::Job& names, const std::stop_token& stop) {
  k8s::Owner owner{k8s::kTrainingJobs.ApiVersion(), std::string(k8s::kTrainingJobKind),
                   job.config.training_job(), job.config.training_job_uid()};
  if (!owner.uid.empty()) {
    return owner;
  }
  const plan::Strategy& strategy = job.config.plan().train().strategy();
  k8s::TrainingJobSpec spec = SpecOf(job, place.image);
  spec.source_secret = names.secret;
  ASSIGN_OR_RETURN(const k8s::PodRequest request,
                   RequestedPods(job.config.plan().train(), job.template_json));
  DescribeRequests(request, strategy, spec);
  const k8s::ObjectAnswer made =
      k8s::CreateAll(client,
                     {{k8s::kTrainingJobs, place.namespace_name,
                       k8s::BuildTrainingJob(place.namespace_name, names.name, spec,
                                             {{std::string(k8s::kJobLabel), job.uid}})}},
                     stop)
          .at(0);
  if (made.fault == k8s::Fault::kNotFound) {
    return FailedPrecondition("the cluster does not know the kind TrainingJob")
        .Hint("apply what `sluice k8s manifests` prints");
  }
  RETURN_IF_ERROR(made.status);
  owner.name = made.object.name;
  owner.uid = made.object.uid;
  return owner;
}

Result<PodJobConfig> MasterConfig(const JobPlace& place, const NewJob& job,
                                  const KeptJob::Job& names, const k8s::Object& service) {
  PodJobConfig master;
  master.set_job(job.number);
  master.set_uid(job.uid);
  ASSIGN_OR_RETURN(std::string token, elastic::MakeJobToken());
  ASSIGN_OR_RETURN(const elastic::JobKey key, elastic::MakeJobKey(std::move(token)));
  master.set_token(key.token);
  master.set_certificate(key.certificate);
  master.set_private_key(key.private_key);
  master.set_source_url(job.config.source_url());
  master.set_catalog_url(job.config.catalog_url());
  master.set_owner(job.config.owner());
  ASSIGN_OR_RETURN(*master.mutable_found_at(), k8s::ServiceAddress(service));
  master.set_namespace_name(place.namespace_name);
  master.set_image(place.image);
  master.set_template_json(job.template_json);
  *master.mutable_pods() = job.config.plan().train().strategy().pods();
  if (!k8s::GivesMemory(job.template_json)) {
    master.set_master_memory(MemoryOfMaster(job.config.plan().train()));
  }
  master.set_priority_class(place.priority_class);
  master.set_service(names.name);
  master.set_service_uid(service.uid);
  master.set_training_job(names.owner.name);
  master.set_training_job_uid(names.owner.uid);
  return master;
}

void DeleteObjects(k8s::ApiClient& client, const JobPlace& place, const NewJob& job,
                   const KeptJob::Job& made) {
  std::vector<k8s::Deletion> deletions;
  if (!made.service_uid.empty()) {
    deletions.push_back({k8s::kServices, place.namespace_name, made.name, made.service_uid, 1});
  }
  if (job.config.training_job_uid().empty()) {
    deletions.push_back(
        {k8s::kTrainingJobs, place.namespace_name, made.owner.name, made.owner.uid, 1});
  }
  for (const k8s::ApiAnswer& answer : k8s::DeleteAll(client, deletions, {})) {
    if (!answer.ok()) {
      log::Warn("job={} leaves something behind: {}", made.number, answer.status.message());
    }
  }
}

}  // namespace

Result<BegunJob> CreateJobObjects(k8s::ApiClient& client, const JobPlace& place, const NewJob& job,
                                  const std::stop_token& stop) {
  KeptJob::Job made{job.uid, PodJobName(job.number, job.uid), "", "", place.image, job.number};
  made.secret = made.name + "-master";
  ASSIGN_OR_RETURN(made.owner, TakeOwner(client, place, job, made, stop));
  const k8s::ObjectAnswer service =
      k8s::CreateAll(
          client,
          {{k8s::kServices, place.namespace_name, JobServiceJson(made, place.namespace_name, 0)}},
          stop)
          .at(0);
  made.service_uid = service.object.uid;
  const Result<PodJobConfig> master = service.ok() ? MasterConfig(place, job, made, service.object)
                                                   : Result<PodJobConfig>(service.status);
  Result<FirstPods> first_pods =
      master.ok() ? PlanFirstPods(*master, job.config.plan().train(), job.secrets.source())
                  : Result<FirstPods>(master.status());
  Result<std::string> secret =
      first_pods.ok() ? MasterSecretJson(place.namespace_name, made.secret, *master, job.secrets)
                      : Result<std::string>(first_pods.status());
  const Status status =
      secret.ok() ? k8s::CreateAll(client, {{k8s::kSecrets, place.namespace_name, *secret}}, stop)
                        .at(0)
                        .status
                  : secret.status();
  if (!status.ok()) {
    DeleteObjects(client, place, job, made);
    return status;
  }
  return BegunJob{std::move(made), *std::move(first_pods), *std::move(secret)};
}

Result<std::string> MasterSecretJson(const std::string& namespace_name, const std::string& name,
                                     const PodJobConfig& config, const JobSecrets& secrets) {
  k8s::PodShape shape;
  shape.namespace_name = namespace_name;
  shape.owner = OwnerOf(config);
  shape.training_job = config.training_job();
  elastic::ProcessSpec spec;
  spec.role = elastic::Role::kMaster;
  spec.name = name;
  spec.config = config.SerializeAsString();
  spec.secret = secrets.SerializeAsString();
  return k8s::BuildSecret(shape, {config.uid(), spec.role, elastic::kNoIncarnation, {}}, spec,
                          name);
}

std::string JobServiceJson(const KeptJob::Job& job, const std::string& namespace_name,
                           int64_t master) {
  return k8s::BuildJobService({namespace_name, job.name, job.uid, job.secret, job.image, job.number,
                               master, kMasterPort, job.owner});
}

k8s::ObjectAnswer ReadJobSecret(k8s::ApiClient& client, const std::string& namespace_name,
                                const std::string& name, PodJobConfig& config, JobSecrets& secrets,
                                const std::stop_token& stop) {
  k8s::ObjectAnswer secret = k8s::GetObject(client, k8s::kSecrets, namespace_name, name, stop);
  if (!secret.ok()) {
    return secret;
  }
  const auto content = k8s::SecretContent(secret.object);
  if (!content.ok() || !content->contains("config") || !content->contains("secret") ||
      !config.ParseFromString(content->at("config")) ||
      !secrets.ParseFromString(content->at("secret"))) {
    secret.fault = k8s::Fault::kInvalid;
    secret.status = Internal(fmt::format("the Secret {} is damaged", name));
  }
  return secret;
}

}  // namespace sluice::executor
