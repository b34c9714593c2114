#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "k8s/api_client.h"
#include "k8s/api_verbs.h"
#include "k8s/lease.h"
#include "k8s/pod_spec.h"
#include "k8s/pod_state.h"
#include "k8s/watch.h"

namespace sluice::executor {

// Keeps a master running for each job on pods in a namespace, until one ends with 0: then the job's
// row says how the job ended, and its Kubernetes objects are deleted. If a master ends otherwise,
// is gone, is being evicted or no longer renews its Lease (MasterLease), the keeper starts the next
// one with a higher number, and points the job's Service to it. All its state can be rebuilt: the
// jobs are the Services with their label. Several keepers can work side by side, because each
// created object has a unique name. Thread-safe.
class JobKeeper {
 public:
  struct Job {
    std::string uid;
    std::string name;    // of its Service; prefix of its pods' names
    std::string secret;  // mounted by its masters
    std::string service_uid;
    std::string image;
    int64_t number = 0;     // number of its row
    k8s::Owner owner = {};  // its TrainingJob; none: from an earlier version
  };
  // Called with the reason when a job gets no further master, for its row: an error, or Cancelled.
  using GivenUp = std::function<void(const Job& job, const Status& why)>;

  // `shape`: where masters run; their jobs' Secrets say how they look. Finds the existing jobs.
  static Result<std::unique_ptr<JobKeeper>> Start(k8s::ApiClient& client, k8s::PodShape shape,
                                                  GivenUp given_up, const std::stop_token& stop);
  ~JobKeeper();  // the jobs continue
  // Starts working on the jobs; Suspend calls made before are respected.
  void Begin();

  void Keep(const Job& job) EXCLUDES(mutex_);
  // The job gets no further master, and its current one is ended; its row records `why`, cancelled
  // or an error.
  void GiveUp(const std::string& uid, Status why) EXCLUDES(mutex_);
  bool Keeps(const std::string& uid) EXCLUDES(mutex_);
  size_t jobs() EXCLUDES(mutex_);
  std::map<std::string, uint64_t> watch_restarts() const { return watch_->restarts(); }
  // `wanted`: whether its TrainingJob asks for suspension; `done`: whether its status confirms it.
  // A suspended job has no master.
  void Suspend(const std::string& uid, bool wanted, bool done) EXCLUDES(mutex_);

  // The Service of a job, which carries what a keeper needs to know. `master`: the number of the
  // master that it leads to.
  static std::string ServiceJson(const Job& job, const std::string& namespace_name, int64_t master);

 private:
  struct Master {
    std::string pod_uid;
    k8s::PodState state;
    bool gone = false;
  };
  struct Kept {
    Job job;
    int64_t newest = 0;  // number of the master that is to run; 0: none yet
    std::map<int64_t, Master> masters;
    bool made = false;  // the newest one
    TimePoint made_at{};
    TimePoint due{};
    int lost = 0;  // in a row, soon after they were created
    std::optional<Status> hopeless;
    bool silent = false;                      // the newest one has not renewed its Lease
    bool suspend = false, suspended = false;  // as requested; as its status says
  };
  // The state of the Lease of a job's newest master when last read.
  struct Look {
    int64_t master = 0;
    std::unique_ptr<k8s::LeaseClaim> claim;
    TimePoint looked{};  // last time that the API answered
  };
  enum class Need { kNothing, kMaster, kClear, kEnd };

  JobKeeper(k8s::ApiClient& client, k8s::PodShape shape, GivenUp given_up);
  Status FindJobs(const std::stop_token& stop);
  void OnChange(const k8s::ObjectChange& change) EXCLUDES(mutex_);
  void Run(const std::stop_token& stop);
  Need NeedOf(Kept& kept, TimePoint now) REQUIRES(mutex_);
  Need NeedOfSuspended(const Kept& kept) REQUIRES(mutex_);
  void Clear(const std::string& uid, const std::stop_token& stop) EXCLUDES(mutex_);
  k8s::ObjectAnswer TakeShape(const Job& job, const std::stop_token& stop, k8s::PodShape& shape);
  void LookAtLeases(const std::stop_token& stop) EXCLUDES(mutex_);
  void MakeMaster(const std::string& uid, const std::stop_token& stop) EXCLUDES(mutex_);
  void End(const std::string& uid, const std::stop_token& stop) EXCLUDES(mutex_);

  k8s::ApiClient& client_;
  const k8s::PodShape shape_;
  const GivenUp given_up_;
  Mutex mutex_;
  std::condition_variable_any changed_;
  uint64_t changes_ GUARDED_BY(mutex_) = 0;
  std::map<std::string, Kept> jobs_ GUARDED_BY(mutex_);  // by uid
  // Pods of jobs that are not known yet.
  std::map<std::string, std::map<int64_t, Master>> strangers_ GUARDED_BY(mutex_);
  std::map<std::string, Look> looks_;  // by job uid; used by the keeper's thread only
  TimePoint looked_{};
  std::unique_ptr<k8s::ObjectWatch> watch_;
  std::jthread thread_;
};

}  // namespace sluice::executor
