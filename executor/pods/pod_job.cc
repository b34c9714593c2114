#include "executor/pods/pod_job.h"

#include <fmt/core.h>

#include "executor/pods/pod_job.pb.h"

namespace sluice::executor {

std::string PodJobName(int64_t job, std::string_view uid) {
  constexpr size_t kEnough = 6;
  return fmt::format("job{}-{}", job, uid.substr(0, kEnough));
}

k8s::Owner OwnerOf(const PodJobConfig& config) {
  return {"v1", "Service", config.service(), config.service_uid()};
}

std::string MasterPodName(std::string_view job_name, int64_t number) {
  return fmt::format("{}-master-{}", job_name, number);
}

}  // namespace sluice::executor
