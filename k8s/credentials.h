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

// An API server's address and how to verify it.
struct Cluster {
  std::string url;          // https://[fd00::1]:6443, without a trailing slash
  std::string ca_pem;       // empty: the system's certificates
  std::string server_name;  // of its certificate; empty: the URL's host
  std::string proxy;        // empty: none, regardless of the environment
  bool unverified = false;  // insecure-skip-tls-verify
};

// Our identity. Secret: never in a log or an error.
struct Login {
  std::string token;                     // bearer; empty: none
  std::string certificate_pem, key_pem;  // empty: none
  uint64_t reading = 0;                  // number of this reading within the process
};

// The source of our identity, which says when it has to be read again.
class LoginSource {
 public:
  struct Answer {
    Login login;
    std::optional<double> good_for_seconds;  // nullopt: forever
  };
  virtual ~LoginSource() = default;
  virtual Result<Answer> Read() = 0;  // one call at a time
};

// An API server and our identity there, reread as it changes: tokens that Kubernetes gives to pods
// are valid for an hour or less. Thread-safe.
class Credentials {
 public:
  Credentials(Cluster cluster, std::string namespace_name, std::unique_ptr<LoginSource> source,
              const Clock& clock);

  const Cluster& cluster() const { return cluster_; }
  // Of our own pod or of the kubeconfig's context; "default" if unspecified.
  const std::string& namespace_name() const { return namespace_; }

  // May read files or run a program. If that fails, the previous login is used while there is one.
  Result<Login> Current() EXCLUDES(mutex_);
  // The API server has answered 401: read again at the next call, unless that has been done
  // meanwhile.
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

// A pod's own settings: KUBERNETES_SERVICE_HOST and _PORT, and the folder of its service account.
struct InClusterPlace {
  std::string host, port;
  std::string folder = "/var/run/secrets/kubernetes.io/serviceaccount";
};
Result<std::unique_ptr<Credentials>> CredentialsInCluster(const InClusterPlace& place,
                                                          const Clock& clock);

// From kubeconfig files, of which the first that defines a name counts, as in kubectl. `context`
// empty: the current one. Supports certificates, tokens, token files and exec plug-ins
// (client.authentication.k8s.io v1 and v1beta1); other kinds are refused.
Result<std::unique_ptr<Credentials>> CredentialsFromKubeconfig(
    const std::vector<std::string>& files, const std::string& context, const Clock& clock);

}  // namespace sluice::k8s
