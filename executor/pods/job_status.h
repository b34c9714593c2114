#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "catalog/job_store.h"
#include "catalog/model_store.h"
#include "elastic/fleet/fleet.h"
#include "elastic/job/training_job.h"
#include "k8s/api_client.h"
#include "k8s/event_recorder.h"
#include "k8s/training_job.h"
#include "k8s/training_job_status.h"

namespace sluice::executor {

class PodJobConfig;

// Writes the state of a job's master to the status of its TrainingJob, at most once a second and
// for display: what cannot be written is written later and holds nothing up. At the same interval
// it reads what the TrainingJob asks of the running job. Does nothing for a job without one (from
// an earlier version). Thread-safe.
class JobStatus {
 public:
  // The state of the job's pods, from its fleet.
  struct Pods {
    uint32_t workers = 0, servers = 0, waiting = 0;  // with places; without
    std::string waiting_for;
    std::optional<uint32_t> wanted = {};  // workers
    bool operator==(const Pods&) const = default;
  };
  // What users may change in a TrainingJob while it runs.
  struct Requests {
    bool deleted = false;  // deleted, or being deleted
    bool suspend = false;
    std::optional<uint32_t> most;     // spec.workers.max, as `kubectl scale` writes it
    std::optional<k8s::Grant> grant;  // from a controller
    bool operator==(const Requests&) const = default;
  };
  // Called on a thread of its own, first with the current values and then whenever they change.
  // Returns why the job is not suspended although that was requested, else "".
  using OnRequests = std::function<std::string(const Requests& requests)>;

  // `master`: this one's number and pod. All arguments outlive this.
  JobStatus(k8s::ApiClient& client, const PodJobConfig& config, int64_t master,
            std::string master_pod);
  ~JobStatus();

  // What the statement asks for. `fixed`: the job takes no more workers than `most`, however it is
  // scaled.
  void Asked(const std::string& model, uint32_t least, uint32_t most, bool fixed, bool checkpoints)
      EXCLUDES(mutex_);
  // Sets the receiver, once. nullptr: removes it; it is not being called when this returns.
  void Subscribe(OnRequests on_requests) EXCLUDES(mutex_);
  // The current values. An error: the API does not answer, or the TrainingJob is gone.
  struct Now {
    Requests requests;
    uint32_t granted_workers = 0;  // by the previous master; 0: not known
  };
  Result<Now> Look(const std::stop_token& stop);
  void OnPods(const Pods& pods) EXCLUDES(mutex_);
  void OnProgress(const elastic::Progress& progress) EXCLUDES(mutex_);
  // One of the job's pods has started, or has ended with this fate ("preempted").
  void OnStarted(elastic::Role role) EXCLUDES(mutex_);
  void OnEnded(elastic::Role role, const std::string& fate) EXCLUDES(mutex_);
  void OnWatchRestarts(std::map<std::string, uint64_t> restarts) EXCLUDES(mutex_);
  // The job's metrics for Prometheus.
  std::string Metrics() EXCLUDES(mutex_);
  // An Event of the TrainingJob, for `kubectl describe`: k8s::EventRecorder.
  void Event(bool warning, const std::string& reason, const std::string& message);
  // Writes how the job has ended, or that it is suspended, from its row. Tries for some seconds.
  // `stored`: StoredBy.
  void End(const catalog::Job& row, std::optional<catalog::ModelVersion> stored) EXCLUDES(mutex_);

 private:
  void Run(const std::stop_token& stop) EXCLUDES(mutex_);
  Result<Now> NowOf(const k8s::Object& object) EXCLUDES(mutex_);
  // Reads the TrainingJob, passes on its requests, and, if `dirty`, writes what differs.
  Status Write(bool dirty, const std::stop_token& stop) EXCLUDES(mutex_);
  void Fill(k8s::TrainingJobStatus& status, const std::string& now) REQUIRES(mutex_);
  void FillEnd(k8s::TrainingJobStatus& status, const std::string& now) REQUIRES(mutex_);
  void ReportRequests(const Requests& requests) EXCLUDES(reporting_, mutex_);

  k8s::ApiClient& client_;
  const std::string namespace_, name_, uid_, selector_;
  const int64_t job_, master_;
  const std::string master_pod_;
  Mutex mutex_;
  std::condition_variable_any changed_;
  bool dirty_ GUARDED_BY(mutex_) = false;
  std::string model_ GUARDED_BY(mutex_);
  uint32_t least_ GUARDED_BY(mutex_) = 0, most_ GUARDED_BY(mutex_) = 0;
  bool fixed_ GUARDED_BY(mutex_) = false;
  // What holds of the TrainingJob's spec, and the number to which it was scaled last.
  std::optional<k8s::TrainingJobSpec> spec_ GUARDED_BY(mutex_);
  std::optional<uint32_t> scaled_ GUARDED_BY(mutex_);
  bool checkpoints_ GUARDED_BY(mutex_) = false;
  Pods pods_ GUARDED_BY(mutex_);
  elastic::Progress progress_ GUARDED_BY(mutex_);
  catalog::Job ended_ GUARDED_BY(mutex_);  // its number is 0 before the end
  std::optional<catalog::ModelVersion> stored_ GUARDED_BY(mutex_);
  std::string not_suspended_ GUARDED_BY(mutex_);
  std::map<elastic::Role, uint64_t> started_ GUARDED_BY(mutex_);
  std::map<std::pair<elastic::Role, std::string>, uint64_t> fates_ GUARDED_BY(mutex_);
  std::map<std::string, uint64_t> watch_restarts_ GUARDED_BY(mutex_);
  Mutex reporting_;  // taken before mutex_
  OnRequests on_requests_ GUARDED_BY(reporting_);
  std::optional<Requests> reported_ GUARDED_BY(reporting_);
  std::unique_ptr<k8s::EventRecorder> events_;  // null: there is no TrainingJob
  std::jthread thread_;                         // last: uses the others
};

// How far it is.
void FillProgress(const elastic::Progress& progress, k8s::TrainingJobStatus& status);
// The conditions of a job that has ended, not suspended: Complete or Failed, and 100 per cent.
// `error`: why it has failed or was cancelled.
void SetEndConditions(catalog::JobState state, const std::string& model, const std::string& error,
                      const std::string& now, k8s::TrainingJobStatus& status);

}  // namespace sluice::executor
