#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"

namespace sluice::k8s {

// Where an API server is and how it is recognised.
struct Cluster {
  std::string url;          // https://[fd00::1]:6443, without a path's last slash
  std::string ca_pem;       // empty: the system's certificates
  std::string server_name;  // of its certificate; empty: the URL's host
  std::string proxy;        // empty: none, whatever the environment says
  bool unverified = false;  // insecure-skip-tls-verify
};

// Who we are. Secret: never in a log or an error.
struct Login {
  std::string token;                     // bearer; empty: none
  std::string certificate_pem, key_pem;  // empty: none
  uint64_t reading = 0;                  // which one of this process this is
};

// What says who we are, and when it has to be asked again.
class LoginSource {
 public:
  struct Answer {
    Login login;
    std::optional<double> good_for_seconds;  // nullopt: for ever
  };
  virtual ~LoginSource() = default;
  virtual Result<Answer> Read() = 0;  // one call at a time
};

// An API server and who we are there, read again as it changes: tokens that Kubernetes gives to
// pods are good for an hour or less. Thread-safe.
class Credentials {
 public:
  Credentials(Cluster cluster, std::string namespace_name, std::unique_ptr<LoginSource> source,
              const Clock& clock);

  const Cluster& cluster() const { return cluster_; }
  // Of our own pod or of the kubeconfig's context; "default" where nothing is said.
  const std::string& namespace_name() const { return namespace_; }

  // May read files or run a program. Where that fails the last one is given on while there is one.
  Result<Login> Current() EXCLUDES(mutex_);
  // The API server has answered 401: read again at the next call, unless that was done meanwhile.
  void Refused(const Login& login) EXCLUDES(mutex_);

 private:
  const Cluster cluster_;
  const std::string namespace_;
  const Clock& clock_;
  Mutex mutex_;
  const std::unique_ptr<LoginSource> source_;
  std::optional<Login> login_ GUARDED_BY(mutex_);
  std::optional<TimePoint> read_again_ GUARDED_BY(mutex_);
  uint64_t readings_ GUARDED_BY(mutex_) = 0;
};

// What a pod finds: KUBERNETES_SERVICE_HOST and _PORT, and the folder of its service account.
struct InClusterPlace {
  std::string host, port;
  std::string folder = "/var/run/secrets/kubernetes.io/serviceaccount";
};
Result<std::unique_ptr<Credentials>> CredentialsInCluster(const InClusterPlace& place,
                                                          const Clock& clock);

// From kubeconfig files, of which the first that has a name decides, as kubectl does. `context`
// empty: the current one. Certificates, tokens, token files and exec plug-ins
// (client.authentication.k8s.io v1 and v1beta1); what is of neither kind is refused.
Result<std::unique_ptr<Credentials>> CredentialsFromKubeconfig(
    const std::vector<std::string>& files, const std::string& context, const Clock& clock);

}  // namespace sluice::k8s
