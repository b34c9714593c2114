#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "executor/pods/first_pods.h"
#include "executor/pods/kept_job.h"
#include "executor/pods/kept_secrets.h"
#include "executor/pods/silent_masters.h"
#include "k8s/api_client.h"
#include "k8s/api_verbs.h"
#include "k8s/lease.h"
#include "k8s/pod_spec.h"
#include "k8s/watch.h"

namespace sluice::executor {

// Keeps a master running for each job on pods of a namespace until one has ended with 0: then the
// job's row says how it ended, and all that Kubernetes has of it goes. A master that has ended
// otherwise, is gone, is leaving or no longer renews its Lease (MasterLease) is followed by the
// next one, with a higher number, to which the job's Service leads from then on (KeptJob). It keeps
// no state of its own: the jobs are the Services with their label. Of several keepers in a
// namespace one is the leader, the holder of the Lease kKeeperLease; the others follow and take
// over when it hands the Lease back or has not renewed it for kSilenceSeconds. Thread-safe.
class JobKeeper {
 public:
  static constexpr char kKeeperLease[] = "sluice-job-keeper";
  static constexpr int kSilenceSeconds = 8;
  static constexpr double kRenewSeconds = 2;

  using Job = KeptJob::Job;
  // Why a job gets no further master, as its row has to say: an error, or Cancelled.
  using GivenUp = std::function<void(const Job& job, const Status& why)>;
  // What keeps its master from running, whenever that is another trouble. Must not block.
  using Troubled = std::function<void(const Job& job, const KeptJob::Trouble& trouble)>;

  // `shape`: where masters run; their jobs' Secrets say what they look like. `holder`: who this
  // keeper is, unlike every other one. Finds the jobs that are there.
  static Result<std::unique_ptr<JobKeeper>> Start(k8s::ApiClient& client, k8s::PodShape shape,
                                                  std::string holder, GivenUp given_up,
                                                  Troubled troubled, const std::stop_token& stop);
  ~JobKeeper();  // the jobs continue; the Lease is handed back
  // Begins to act. What is known of the jobs by then (Suspend) is obeyed.
  void Begin();

  // No longer acts, nor calls; the jobs that it hears of are kept by the next process.
  void Rest();

  // A job that has begun. `first_pods`: created when its first master has a place. `secret`: what
  // its masters mount (MasterSecretJson); "": to be read.
  void Keep(const Job& job, FirstPods first_pods = {}, std::string secret = {}) EXCLUDES(mutex_);
  // The job gets no further master and loses the one that it has; its row will say why: cancelled,
  // or the error.
  void GiveUp(const std::string& uid, Status why) EXCLUDES(mutex_);
  // The same, for a reason that only this process knows: done whether or not this keeper leads.
  void Forget(const std::string& uid, Status why) EXCLUDES(mutex_);
  bool Keeps(const std::string& uid) EXCLUDES(mutex_);
  size_t jobs() EXCLUDES(mutex_);
  bool leads() EXCLUDES(mutex_);  // it holds the Lease
  std::map<std::string, uint64_t> watch_restarts() const;
  // `wanted`: as its TrainingJob asks for; `done`: as its status says. A job that is suspended has
  // no master.
  void Suspend(const std::string& uid, bool wanted, bool done) EXCLUDES(mutex_);

 private:
  JobKeeper(k8s::ApiClient& client, k8s::PodShape shape, std::string holder, GivenUp given_up,
            Troubled troubled);
  void OnMasterPod(const k8s::ObjectChange& change) EXCLUDES(mutex_);
  void OnService(const k8s::ObjectChange& change) EXCLUDES(mutex_);
  void Run(const std::stop_token& stop);
  bool Lead(const std::stop_token& stop) EXCLUDES(mutex_);
  void Act(const std::stop_token& stop) EXCLUDES(mutex_);
  void Follow(const std::stop_token& stop) EXCLUDES(mutex_);
  void Clear(const std::string& uid, const std::stop_token& stop) EXCLUDES(mutex_);
  void LookAtSecrets(bool leads, const std::stop_token& stop) EXCLUDES(mutex_);
  void LookAtLeases(const std::stop_token& stop) EXCLUDES(mutex_);
  void MakeFirstPods(const std::stop_token& stop) EXCLUDES(mutex_);
  std::vector<FirstPods> FirstPodsDue(const std::stop_token& stop) EXCLUDES(mutex_);
  void TellTroubles() EXCLUDES(mutex_);
  void MakeMaster(const std::string& uid, const std::stop_token& stop) EXCLUDES(mutex_);
  void End(const std::string& uid, const std::stop_token& stop) EXCLUDES(mutex_);

  k8s::ApiClient& client_;
  const k8s::PodShape shape_;
  const GivenUp given_up_;
  const Troubled troubled_;
  Mutex mutex_;
  std::condition_variable_any changed_;
  uint64_t changes_ GUARDED_BY(mutex_) = 0;
  bool leads_ GUARDED_BY(mutex_) = false;
  std::map<std::string, KeptJob> jobs_ GUARDED_BY(mutex_);  // by uid
  // State of jobs whose Services have not been seen yet.
  std::map<std::string, KeptJob> unknown_jobs_ GUARDED_BY(mutex_);
  std::set<std::string> forgotten_ GUARDED_BY(mutex_);  // uids of jobs to end
  // Not created yet; by the uid of their job.
  std::map<std::string, FirstPods> first_pods_ GUARDED_BY(mutex_);
  // The thread's own:
  k8s::LeaseClaim claim_;
  TimePoint renewed_{};
  SilentMasters silent_;
  KeptSecrets secrets_;
  std::map<std::string, TimePoint> without_secret_;              // since when, by a job's uid
  std::map<std::string, std::optional<KeptJob::Trouble>> told_;  // the last one, by a job's uid

  std::unique_ptr<k8s::ObjectWatch> masters_, services_;
  std::jthread thread_, first_pods_thread_;
};

}  // namespace sluice::executor
