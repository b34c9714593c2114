#include "executor/pods/kubernetes_access.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::executor {
namespace {

std::vector<std::string> FilesOf(std::string_view list) {
  std::vector<std::string> files;
  while (!list.empty()) {
    const size_t end = std::min(list.find(':'), list.size());
    if (end > 0) {
      files.emplace_back(list.substr(0, end));
    }
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return files;
}

}  // namespace

Result<std::unique_ptr<KubernetesAccess>> KubernetesAccess::Open(const KubernetesPlace& place) {
  std::unique_ptr<KubernetesAccess> access(new KubernetesAccess());
  const std::vector<std::string> files = FilesOf(place.kubeconfig);
  if (files.empty() && place.host.empty()) {
    return FailedPrecondition("no Kubernetes is known here")
        .Hint("run in a pod, or name a kubeconfig file with KUBECONFIG");
  }
  ASSIGN_OR_RETURN(access->credentials_,
                   files.empty()
                       ? k8s::CredentialsInCluster({place.host, place.port}, access->clock_)
                       : k8s::CredentialsFromKubeconfig(files, "", access->clock_));
  access->client_ =
      std::make_unique<k8s::ApiClient>(*access->credentials_, k8s::ApiOptions(), access->clock_);
  return access;
}

}  // namespace sluice::executor
