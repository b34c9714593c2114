#include "executor/pods/pod_job.h"

#include <fmt/core.h>

#include "executor/pods/pod_job.pb.h"
#include "k8s/training_job.h"

namespace sluice::executor {

std::string PodJobName(int64_t job, std::string_view uid) {
  constexpr size_t kEnough = 6;
  return fmt::format("job{}-{}", job, uid.substr(0, kEnough));
}

k8s::Owner OwnerOf(const PodJobConfig& config) {
  return config.training_job().empty()
             ? k8s::Owner{"v1", "Service", config.service(), config.service_uid()}
             : k8s::Owner{k8s::kTrainingJobs.ApiVersion(), std::string(k8s::kTrainingJobKind),
                          config.training_job(), config.training_job_uid()};
}

std::string MasterPodName(std::string_view job_name, int64_t number) {
  return fmt::format("{}-master-{}", job_name, number);
}

}  // namespace sluice::executor
