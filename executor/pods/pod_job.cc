#include "executor/pods/pod_job.h"

#include <fmt/core.h>

#include "elastic/job/fleet_job.h"
#include "executor/pods/pod_job.pb.h"

namespace sluice::executor {

std::string PodJobName(int64_t job, std::string_view uid) {
  constexpr size_t kEnough = 6;
  return fmt::format("job{}-{}", job, uid.substr(0, kEnough));
}

std::string RunName(std::string_view job_name, int64_t master) {
  return fmt::format("{}-{}", job_name, master);
}

// After the name of its run comes a word ("worker"), after that of the job's first one perhaps the
// number of another run.
bool IsOfRun(std::string_view pod_name, std::string_view run) {
  if (!pod_name.starts_with(run)) {
    return false;
  }
  pod_name.remove_prefix(run.size());
  return pod_name.size() > 1 && pod_name[0] == '-' && (pod_name[1] < '0' || pod_name[1] > '9');
}

k8s::Owner OwnerOf(const PodJobConfig& config) {
  return {"v1", "Service", config.service(), config.service_uid()};
}

elastic::JobEndpoint EndpointOf(const PodJobConfig& config) {
  elastic::JobEndpoint endpoint(PodJobName(config.job(), config.uid()));
  endpoint.found_at = config.found_at();
  endpoint.configures = true;
  endpoint.key = config.token();
  endpoint.key.certificate = config.certificate();
  endpoint.key.private_key = config.private_key();
  return endpoint;
}

std::string MasterPodName(std::string_view job_name, int64_t number) {
  return fmt::format("{}-master-{}", job_name, number);
}

}  // namespace sluice::executor
