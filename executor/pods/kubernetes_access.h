#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "k8s/api_client.h"
#include "k8s/credentials.h"

namespace sluice::executor {

// Where a process finds Kubernetes, according to its environment.
struct KubernetesPlace {
  std::string kubeconfig;  // files separated by colons ($KUBECONFIG); "": none
  // In a pod: $KUBERNETES_SERVICE_HOST and _PORT.
  std::string host, port;
};

// The API server that this process may use: from the kubeconfig, as in kubectl, or else of the
// cluster that this pod is in. Thread-safe, like the client.
class KubernetesAccess {
 public:
  static Result<std::unique_ptr<KubernetesAccess>> Open(const KubernetesPlace& place);

  k8s::ApiClient& client() { return *client_; }
  // From the kubeconfig's context, or of this pod.
  const std::string& namespace_name() const { return credentials_->namespace_name(); }

 private:
  KubernetesAccess() = default;
  SteadyClock clock_;
  std::unique_ptr<k8s::Credentials> credentials_;
  std::unique_ptr<k8s::ApiClient> client_;
};

}  // namespace sluice::executor
