#include "elastic/job/process_access.h"

#include "elastic/job/process.pb.h"
#include "elastic/rpc/job_endpoint.h"

namespace sluice::elastic {

ProcessConfig AccessOf(const JobEndpoint& endpoint, const std::string& master_address) {
  ProcessConfig config;
  config.set_job(endpoint.job_name);
  config.set_token(endpoint.key.token);
  config.set_certificate(endpoint.key.certificate);
  config.set_private_key(endpoint.key.private_key);
  config.set_master_address(master_address);
  config.set_configured_by_master(endpoint.configures);
  return config;
}

std::string AccessConfig(const JobEndpoint& endpoint) {
  return AccessOf(endpoint, endpoint.found_at).SerializeAsString();
}

}  // namespace sluice::elastic
