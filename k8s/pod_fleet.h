#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "elastic/fleet/fleet.h"
#include "k8s/api_client.h"
#include "k8s/fleet_pods.h"
#include "k8s/known_objects.h"
#include "k8s/pod_labels.h"
#include "k8s/pod_spec.h"
#include "k8s/shared_secrets.h"
#include "k8s/watch.h"

namespace sluice::k8s {

// The processes of one job as pods. It creates and deletes them, finds those of earlier masters,
// and reports their events; no pod depends on this object, and destroying it stops none. Pods to be
// created at the same time are requested together; processes of the same configuration mount one
// Secret, which stays until its owner is deleted. A request that the API server cannot serve now,
// or that a quota forbids, is retried and reported as kWaiting, one that it refuses is reported as
// an end. Its destructor sends the deletions that are due, for two seconds at most. Thread-safe.
class PodFleet final : public elastic::Fleet {
 public:
  // A pod of the job that existed before.
  struct Adopted {
    std::string name;
    PodIdentity identity;
  };

  // Whether this fleet's owner is still in charge; false: not now, ask again.
  using MayWrite = std::function<bool(const std::stop_token& stop)>;
  // Lists and watches the pods of the job; an error if that is not possible. `may_write` is asked
  // before pods are created or deleted; none: always.
  static Result<std::unique_ptr<PodFleet>> Start(ApiClient& client, PodShape shape,
                                                 std::string job_uid, const std::stop_token& stop,
                                                 MayWrite may_write = {});
  ~PodFleet() override;

  // Those that are running. Their events are reported as if they had been launched here.
  std::vector<Adopted> adopted() const { return adopted_; }
  // Workers created from now on are placed on these nodes if possible; none: anywhere.
  void PreferNodes(std::vector<std::string> nodes) EXCLUDES(mutex_);
  // The node of a pod; empty: it has none yet, or is gone.
  std::string NodeOf(const std::string& name) const EXCLUDES(mutex_);
  std::map<std::string, uint64_t> watch_restarts() const { return watch_->restarts(); }

  // Returns at once: if the pod cannot be created after all, that is an event. A pod that was
  // adopted is not created again (FleetPods::Launch). kAlreadyExists: the name is taken by another
  // process that has not ended.
  Status Launch(const elastic::ProcessSpec& spec) override EXCLUDES(mutex_);
  Status Stop(const std::string& name, double grace_seconds) override EXCLUDES(mutex_);
  // Called from one thread at a time, in the order of the events. The watcher may call Launch and
  // Stop.
  void Watch(Watcher watcher) override EXCLUDES(mutex_);

 private:
  PodFleet(ApiClient& client, PodShape shape, std::string job_uid, MayWrite may_write);
  // Waits until it is allowed. False: `stop` was requested.
  bool WaitToWrite(const std::stop_token& stop) const;

  void OnChange(const ObjectChange& change) EXCLUDES(mutex_);
  std::map<std::string, std::string> TakeLaunched() EXCLUDES(mutex_);
  void Create(const std::vector<std::string>& names, const std::stop_token& stop) EXCLUDES(mutex_);
  void Delete(const std::vector<std::string>& names, const std::stop_token& stop) EXCLUDES(mutex_);
  void FindUids(const std::vector<std::string>& names, const std::stop_token& stop)
      EXCLUDES(mutex_);
  void DeliverEvents(const std::stop_token& stop) EXCLUDES(mutex_);
  void Changed() REQUIRES(mutex_);
  void WaitForChange(MutexLock& lock, const std::stop_token& stop, bool look) REQUIRES(mutex_);
  // Names of pods to create (or to delete) now; waits until there are some, or until the Secrets
  // (or what is left over) are due.
  std::vector<std::string> Due(bool to_make, const std::stop_token& stop) EXCLUDES(mutex_);

  ApiClient& client_;
  const PodShape shape_;
  const std::string job_uid_;
  const MayWrite may_write_;
  std::vector<Adopted> adopted_;  // constant after Start

  mutable Mutex mutex_;
  std::condition_variable_any changed_;
  uint64_t changes_ GUARDED_BY(mutex_) = 0;
  FleetPods pods_ GUARDED_BY(mutex_);
  std::vector<std::string> preferred_ GUARDED_BY(mutex_);  // nodes
  bool is_deleting_ GUARDED_BY(mutex_) = false;            // requests are under way
  Watcher watcher_ GUARDED_BY(mutex_);

  std::map<std::string, std::string> launched_ GUARDED_BY(mutex_);  // their Secrets, by name

  SharedSecrets secrets_;  // for the thread that creates

  std::unique_ptr<ObjectWatch> watch_;
  std::jthread making_, deleting_, delivering_;
};

}  // namespace sluice::k8s
