#pragma once

#include <cstdint>
#include <stop_token>
#include <string>

#include "base/status.h"
#include "executor/pods/first_pods.h"
#include "executor/pods/kept_job.h"
#include "k8s/api_client.h"
#include "k8s/api_verbs.h"

namespace sluice::executor {

class JobConfig;
class JobSecrets;
class PodJobConfig;

// The objects in Kubernetes with which a job on pods begins: its TrainingJob (unless a user has
// created it), the Service that leads to its masters, and the Secret that these mount. The
// TrainingJob owns the Service, and the Service the rest.
struct NewJob {
  const std::string& statement;
  const JobConfig& config;
  const JobSecrets& secrets;
  const std::string& template_json;  // k8s::PodShape
  int64_t number = 0;                // its row
  const std::string& uid;
};
struct JobPlace {
  const std::string& namespace_name;
  const std::string& image;
  const std::string& priority_class;
};
struct BegunJob {
  KeptJob::Job job;
  FirstPods first_pods;  // not created yet
  std::string secret;    // MasterSecretJson
};
// If one cannot be created, those created before are deleted.
Result<BegunJob> CreateJobObjects(k8s::ApiClient& client, const JobPlace& place, const NewJob& job,
                                  const std::stop_token& stop);

// The Service of a job, which carries what a keeper has to know of it. `master`: the number that
// it leads to.
std::string JobServiceJson(const KeptJob::Job& job, const std::string& namespace_name,
                           int64_t master);

// The Secret of that name that a job's masters mount.
Result<std::string> MasterSecretJson(const std::string& namespace_name, const std::string& name,
                                     const PodJobConfig& config, const JobSecrets& secrets);

// What a job's masters mount. Fault::kInvalid: the Secret is damaged.
k8s::ObjectAnswer ReadJobSecret(k8s::ApiClient& client, const std::string& namespace_name,
                                const std::string& name, PodJobConfig& config, JobSecrets& secrets,
                                const std::stop_token& stop);

}  // namespace sluice::executor
