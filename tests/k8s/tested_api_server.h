#pragma once

#include <memory>
#include <string>

#include "k8s/api_client.h"
#include "k8s/credentials.h"
#include "tests/k8s/fake_api_server.h"
#include "tests/k8s/hand_clock.h"

namespace sluice::k8s {

// An API server for the contract suites: the fake, or the real one in the kubeconfig
// SLUICE_TEST_KUBERNETES (`scripts/kubernetes with COMMAND` starts one). Both know the contexts
// "certificate", "token", "powerless" (without rights) and "stranger" (unknown).
class TestedApiServer {
 public:
  static bool HasReal();
  // Beside the real one; SLUICE_TEST_SCHEDULER (`with --controllers`).
  static bool HasScheduler();
  // A new namespace each time.
  explicit TestedApiServer(bool real);
  ~TestedApiServer();

  bool is_real() const { return fake_ == nullptr; }
  ApiClient& client() { return *client_; }
  const std::string& namespace_name() const { return namespace_; }
  HandClock& clock() { return clock_; }
  FakeApiServer& fake() { return *fake_; }
  // Another client, with another login.
  ApiClient& As(const std::string& context);
  // A client with this token.
  ApiClient& WithToken(const std::string& token);

  // Requests of others: a scheduler, kubelets, administrators.
  ApiAnswer Do(Verb verb, const Resource& resource, const std::string& name,
               const std::string& subresource, const std::string& body);
  void Bind(const std::string& pod, const std::string& node);
  void SetStatus(const std::string& pod, const std::string& status_json);
  // Forgets the history so far.
  void Compact();
  // Removes the pod as a kubelet finally does.
  void Forget(const std::string& pod);

 private:
  struct Login {
    std::unique_ptr<Credentials> credentials;
    std::unique_ptr<ApiClient> client;
  };
  void AwaitServiceAccount();

  std::unique_ptr<FakeApiServer> fake_;
  HandClock clock_;
  std::string config_, namespace_;
  std::map<std::string, Login> logins_;
  ApiClient* client_ = nullptr;
};

// A pod that is not meant to be started: `labels_json` like {"a":"b"}.
std::string PodJson(const std::string& name, const std::string& labels_json = "{}",
                    const std::string& more_spec = "");

}  // namespace sluice::k8s
