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
#include "elastic/fleet/fleet.h"
#include "elastic/job/training_job.h"
#include "k8s/api_client.h"
#include "k8s/event_recorder.h"
#include "k8s/training_job_status.h"

namespace sluice::executor {

class PodJobConfig;

// What a job's master says in the status of its TrainingJob, at most once a second and for people:
// what cannot be written is written later, and holds nobody up. What the TrainingJob asks of the
// running job is seen as often. Of a job without one (an earlier version's) nothing. Thread-safe.
class JobStatus {
 public:
  // How the job's pods are, as its fleet knows them.
  struct Pods {
    uint32_t workers = 0, servers = 0, waiting = 0;  // with places; without
    std::string waiting_for;
    std::optional<uint32_t> wanted = {};  // workers
    bool operator==(const Pods&) const = default;
  };
  // What somebody may write into a TrainingJob while it runs.
  struct Wishes {
    bool deleted = false;  // it is gone, or is to go
    bool suspend = false;
    std::optional<uint32_t> most;     // spec.workers.max, as `kubectl scale` writes it
    std::optional<k8s::Grant> grant;  // of a controller
    bool operator==(const Wishes&) const = default;
  };
  // Called in a thread of its own, first with what is there, and then whenever it changes. A text:
  // why the job is not suspended although that is asked for.
  using OnWishes = std::function<std::string(const Wishes& wishes)>;

  // `master`: this one's number and pod. All outlive this.
  JobStatus(k8s::ApiClient& client, const PodJobConfig& config, int64_t master,
            std::string master_pod);
  ~JobStatus();

  // What the statement asks for.
  void Asked(const std::string& model, uint32_t least, uint32_t most) EXCLUDES(mutex_);
  // Once. nullptr: nobody wants to know any more, and nobody is being told.
  void Hear(OnWishes hears) EXCLUDES(mutex_);
  // As it is now. An error: the API does not answer, or there is no TrainingJob any more.
  struct Now {
    Wishes wishes;
    uint32_t granted_workers = 0;  // by the master before; 0: none has said so
  };
  Result<Now> Look(const std::stop_token& stop);
  void OnPods(const Pods& pods) EXCLUDES(mutex_);
  void OnProgress(const elastic::Progress& progress) EXCLUDES(mutex_);
  // One of the job's pods has started, or has ended so ("preempted").
  void OnStarted(elastic::Role role) EXCLUDES(mutex_);
  void OnEnded(elastic::Role role, const std::string& fate) EXCLUDES(mutex_);
  void OnWatchRestarts(std::map<std::string, uint64_t> restarts) EXCLUDES(mutex_);
  // What Prometheus reads of the job.
  std::string Metrics() EXCLUDES(mutex_);
  // An Event of the TrainingJob, for `kubectl describe`: k8s::EventRecorder.
  void Event(bool warning, const std::string& reason, const std::string& message);
  // Writes how the job has ended, or that it is suspended, as its row says. Tries for some seconds.
  void End(const catalog::Job& row) EXCLUDES(mutex_);

 private:
  void Run(const std::stop_token& stop) EXCLUDES(mutex_);
  // Reads what there is, tells what it asks for, and writes what differs where that is wanted.
  Status Write(bool dirty, const std::stop_token& stop) EXCLUDES(mutex_);
  void Fill(k8s::TrainingJobStatus& status, const std::string& now) REQUIRES(mutex_);
  void FillEnd(k8s::TrainingJobStatus& status, const std::string& now) REQUIRES(mutex_);
  void Tell(const Wishes& wishes) EXCLUDES(telling_, mutex_);

  k8s::ApiClient& client_;
  const std::string namespace_, name_, uid_, selector_;
  const int64_t job_, master_;
  const std::string master_pod_;
  Mutex mutex_;
  std::condition_variable_any changed_;
  bool dirty_ GUARDED_BY(mutex_) = false;
  std::string model_ GUARDED_BY(mutex_);
  uint32_t least_ GUARDED_BY(mutex_) = 0, most_ GUARDED_BY(mutex_) = 0;
  Pods pods_ GUARDED_BY(mutex_);
  elastic::Progress progress_ GUARDED_BY(mutex_);
  catalog::Job ended_ GUARDED_BY(mutex_);  // its number is 0 before
  std::string not_suspended_ GUARDED_BY(mutex_);
  std::map<elastic::Role, uint64_t> started_ GUARDED_BY(mutex_);
  std::map<std::pair<elastic::Role, std::string>, uint64_t> fates_ GUARDED_BY(mutex_);
  std::map<std::string, uint64_t> watch_restarts_ GUARDED_BY(mutex_);
  Mutex telling_;  // taken before mutex_
  OnWishes hears_ GUARDED_BY(telling_);
  std::optional<Wishes> told_ GUARDED_BY(telling_);
  std::unique_ptr<k8s::EventRecorder> events_;  // null: there is no TrainingJob
  std::jthread thread_;                         // last: uses the others
};

}  // namespace sluice::executor
