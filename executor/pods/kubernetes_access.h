#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "k8s/api_client.h"
#include "k8s/credentials.h"

namespace sluice::executor {

// Where a process finds Kubernetes, as its environment says.
struct KubernetesPlace {
  std::string kubeconfig;  // files, with colons between them ($KUBECONFIG); "": none
  // Of a pod: $KUBERNETES_SERVICE_HOST and _PORT.
  std::string host, port;
};

// The API server that this process may use: of the kubeconfig, as kubectl has it, or else of the
// cluster whose pod it is. Thread-safe, as the client is.
class KubernetesAccess {
 public:
  static Result<std::unique_ptr<KubernetesAccess>> Open(const KubernetesPlace& place);

  k8s::ApiClient& client() { return *client_; }
  // Of the kubeconfig's context, or of this pod.
  const std::string& namespace_name() const { return credentials_->namespace_name(); }

 private:
  KubernetesAccess() = default;
  SteadyClock clock_;
  std::unique_ptr<k8s::Credentials> credentials_;
  std::unique_ptr<k8s::ApiClient> client_;
};

}  // namespace sluice::executor
