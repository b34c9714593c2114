#include "server/config/open_cluster.h"

#include <fmt/core.h>

#include <fstream>
#include <iterator>
#include <utility>

#include "base/log.h"
#include "executor/local/local_cluster.h"
#include "executor/local/room_server.h"
#include "executor/pods/pod_cluster.h"

namespace sluice::server {
namespace {

Result<std::string> ReadTemplate(const std::string& path) {
  if (path.empty()) {
    return std::string();
  }
  std::ifstream file(path);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file) {
    return NotFound(fmt::format("cannot read the pod template {}", path));
  }
  return text;
}

}  // namespace

Result<std::unique_ptr<executor::Cluster>> OpenCluster(const Config& config, bool of_gateway,
                                                       TrainingJobsOn training_jobs,
                                                       PodLogins pod_login) {
  executor::LocalCluster::Options local = ClusterOptions(config);
  if (of_gateway) {
    ASSIGN_OR_RETURN(const Auth auth, AuthOf(config));
    local.slots.shared_by_roles = auth != Auth::kTrust;
  }
  auto cluster = std::make_unique<executor::LocalCluster>(std::move(local));
  const std::string room = executor::RoomNameOf(config.source);
  const Status served = of_gateway && !room.empty() ? cluster->ServeRoom(room) : OkStatus();
  if (!served.ok()) {  // its jobs may take the whole machine
    log::Warn("jobs of other processes are granted no room: {}", served.ToString());
  }
  if (config.cluster != "kubernetes") {
    return std::unique_ptr<executor::Cluster>(std::move(cluster));
  }
  executor::PodCluster::Options options;
  options.namespace_name = config.pods_namespace;
  options.image = config.pods_image;
  options.priority_class = config.pods_priority_class;
  options.catalog_url = config.source;
  options.training_jobs = std::move(training_jobs);
  options.pod_login = std::move(pod_login);
  ASSIGN_OR_RETURN(options.template_json, ReadTemplate(config.pods_template));
  ASSIGN_OR_RETURN(auto access, executor::KubernetesAccess::Open(KubernetesOfEnvironment()));
  ASSIGN_OR_RETURN(auto pods, executor::PodCluster::Start(std::move(access), std::move(options),
                                                          std::move(cluster)));
  return std::unique_ptr<executor::Cluster>(std::move(pods));
}

}  // namespace sluice::server
