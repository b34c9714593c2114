#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "k8s/api_client.h"
#include "k8s/credentials.h"
#include "k8s/object.h"
#include "tests/k8s/fake_api_server.h"
#include "tests/k8s/local_scheduler.h"
#include "tests/k8s/service_proxy.h"

namespace sluice::k8s {

// A cluster whose pods are real processes on this machine: the fake API server, and the components
// that act on its objects. It places pods on nodes (which are only names), starts our container's
// command with the Secrets and variables of the pod, at its own address in 127.0.0.0/8; reports the
// process's state as a kubelet does; ends it when its pod is deleted; connects Services to the pods
// that they select; and deletes objects that have lost their owner. There are no mount namespaces:
// a path of a mount in an argument is replaced by the folder's. Thread-safe.
class LocalKubelet {
 public:
  struct Options {
    std::string binary;  // run by containers, whatever their image
    int nodes = 2;
    double node_cpu = 0;  // 0: room for every pod
    // The scheduler runs rarely, and places the last names first: workers before servers.
    bool workers_first = false;
    // From a master's place on a node until its container starts: its image is fetched.
    std::chrono::milliseconds master_start = {};
  };
  explicit LocalKubelet(Options options);
  ~LocalKubelet();  // kills the remaining processes

  FakeApiServer& api() { return api_; }
  ApiClient& client() { return *client_; }
  // File that names the API server to other processes (KUBECONFIG).
  const std::string& kubeconfig() const { return kubeconfig_; }
  const std::string& namespace_name() const { return namespace_; }

  // The process of a pod's running container.
  std::optional<int> ProcessId(const std::string& pod) const;
  // Names of the pods whose containers run, by the role's label ("worker").
  std::vector<std::string> Running(const std::string& role) const;
  std::string NodeOf(const std::string& pod) const;
  // All pods in the order of their starts, including ended ones.
  std::vector<std::string> Started(const std::string& role) const;
  // The output of a pod's container, whether it runs or not.
  std::string LogOf(const std::string& pod) const;
  // nullopt: it has not ended.
  std::optional<int> ExitCodeOf(const std::string& pod) const;
  // SIGKILL to its process; false: it has none.
  bool Kill(const std::string& pod);
  // SIGKILL, and its container runs once more, as on a node that has lost its power and what it
  // knew of the container: nobody learns of the first end.
  bool StartAgain(const std::string& pod);
  // Occupies processors of a node with something else.
  void Occupy(const std::string& node, double cpu);
  // As by kubectl.
  void Delete(const std::string& pod, int grace_seconds);
  // A busy kubelet: from now on it tells the process of a deleted pod only after so long.
  void EndLate(std::chrono::seconds delay) { end_delay_ = delay; }
  // Number of objects of a kind in the namespace.
  size_t Count(const Resource& resource);

 private:
  struct Pod {
    std::string uid, role, node, address, folder, log;
    int pid = -1;
    int exit_code = 0;
    bool ended = false, told = false, asked_to_end = false;
    std::optional<std::chrono::steady_clock::time_point> placed_at, end_at, kill_at;
  };

  void Run(const std::stop_token& stop);
  void Turn(const std::stop_token& stop);
  bool Place(const Object& object, Pod& pod, const std::stop_token& stop);
  void Look(const Object& object, bool placing, const std::stop_token& stop);
  bool Start(const Object& object, Pod& pod, const std::stop_token& stop);
  void Reap(Pod& pod);
  bool ForgetsEndOf(const std::string& pod);
  void Tell(const std::string& name, const Pod& pod, const std::stop_token& stop);
  void LeadServices(const std::vector<Object>& services);
  std::string TargetOf(const std::map<std::string, std::string>& selector) const;
  std::string NextAddress();

  const Options options_;
  const std::string namespace_ = "training";
  SteadyClock clock_;
  FakeApiServer api_;
  std::string folder_, kubeconfig_;
  std::unique_ptr<Credentials> credentials_;
  std::unique_ptr<ApiClient> client_;
  mutable std::mutex mutex_;
  std::map<std::string, Pod> pods_;               // by name
  std::map<std::string, int> exit_codes_;         // by name, of those that have ended
  std::map<std::string, std::string> labels_of_;  // of pods, each "\nlabel=value\n"
  std::map<std::string, std::map<std::string, std::string>> selectors_;  // by a Service's uid
  std::vector<std::pair<std::string, std::string>> started_;             // role and name
  std::map<std::string, std::unique_ptr<ServiceProxy>> proxies_;         // by the Service's uid
  std::atomic<std::chrono::seconds> end_delay_ = std::chrono::seconds(0);
  int addresses_ = 0;
  LocalScheduler scheduler_;
  std::set<std::string> again_;    // names of pods whose next end is forgotten
  std::set<std::string> refused_;  // uids; used by its thread, like the next one
  std::chrono::steady_clock::time_point placed_at_{};
  std::jthread thread_;
};

}  // namespace sluice::k8s
