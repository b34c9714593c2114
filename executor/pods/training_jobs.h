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
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "executor/pods/training_job_work.h"
#include "k8s/api_client.h"
#include "k8s/object.h"
#include "k8s/training_job.h"
#include "k8s/training_job_status.h"
#include "k8s/watch.h"

namespace sluice::executor {

// The TrainingJobs of a namespace. Begins new ones, each once, whichever gateways there are; writes
// errors into their status, and what becomes of those that run in the gateway's process (boosted
// trees), which have no master; ends those that are deleted or late, and reports them; reports
// which are suspended; deletes those that ended long ago. Of a spec that an edit has made wrong,
// what held before still does, and the status says what is wrong; statement and source stay as it
// was begun. Several are worked on at once, so that a database that does not answer holds up its
// own. Thread-safe.
class TrainingJobs {
 public:
  struct Hooks {
    TrainingJobSource source;  // without `begin`: TrainingJobs of users are ignored
    // A user has deleted it. `job_uid`: the label of the job's pods.
    std::function<void(const std::string& job_uid)> deleted;
    // Whether suspension is requested, and whether its master's status confirms it; called on each
    // change.
    std::function<void(const std::string& job_uid, bool wanted, bool done)> suspended;
    // It has run for longer than its activeDeadlineSeconds: ends a job on pods.
    std::function<void(const std::string& job_uid, const Status& why)> late;
  };
  // `holder`: unique name of this process. Does not report deletions from before.
  static Result<std::unique_ptr<TrainingJobs>> Start(k8s::ApiClient& client,
                                                     std::string namespace_name, std::string holder,
                                                     Hooks hooks, const std::stop_token& stop);
  ~TrainingJobs();
  std::map<std::string, uint64_t> watch_restarts() const { return watch_->restarts(); }
  // Of the gateway, about TrainingJobs.
  k8s::EventRecorder& events() { return work_.events(); }

 private:
  struct Known {
    k8s::Object object;
    k8s::TrainingJobSpec spec;  // what holds of it (HoldingSpec)
    std::string mistakes;       // in it
    int64_t generation = 0;     // GenerationOf
    k8s::TrainingJobStatus status;
    std::string claim;    // ClaimOf
    TimePoint claimed{};  // when first seen
    TimePoint ended{};    // when first seen
    bool deleted = false;
    // This process's own knowledge.
    std::optional<TrainingJobRequest> request;  // as which its job was begun
    std::optional<int64_t> job;
    bool busy = false;  // one thread works on it
    TimePoint due{};    // not before
    int failures = 0;   // in a row

    std::optional<int64_t> job_number() const { return status.job ? status.job : job; }
  };
  enum class Need {
    kNothing,
    kBegin,
    kTellSpec,
    kTellSuspended,
    kTellJob,
    kEndDeleted,
    kEndLate,
    kDelete
  };
  using KnownJobs = std::map<std::string, Known>;  // by uid

  TrainingJobs(k8s::ApiClient& client, std::string namespace_name, std::string holder, Hooks hooks);
  void OnChange(const k8s::ObjectChange& change) EXCLUDES(mutex_);
  void OnDeleted(const std::string& uid) REQUIRES(mutex_);
  void Run(const std::stop_token& stop) EXCLUDES(mutex_);
  // Without regard to whether it is suspended, or claimed.
  bool HasNotBegun(const Known& known) const;
  bool IsToBegin(const Known& known, TimePoint now) const;
  bool IsToldOfSpec(const Known& known) const;
  Need NeedOf(Known& known, TimePoint now) const;
  // The most urgent ones for which there is a thread.
  std::vector<std::pair<std::string, Need>> TakeDue() REQUIRES(mutex_);
  void Work(const std::string& uid, Need need, const std::stop_token& stop) EXCLUDES(mutex_);
  Status Do(const Known& known, Need need, TrainingJobWork::Begun& begun,
            const std::stop_token& stop);
  // The job of one that runs in the gateway's process.
  Status EndJob(const Known& known, const Status& why, bool late, const std::stop_token& stop);
  void Finish(const std::string& uid, const Status& done, const TrainingJobWork::Begun& begun,
              bool ended) EXCLUDES(mutex_);

  k8s::ApiClient& client_;
  const std::string holder_;
  const Hooks hooks_;
  TrainingJobWork work_;
  Mutex mutex_;
  std::condition_variable_any changed_;
  uint64_t changes_ GUARDED_BY(mutex_) = 0;
  KnownJobs known_ GUARDED_BY(mutex_);
  std::vector<std::string> finished_ GUARDED_BY(mutex_);  // of `threads_`
  std::map<std::string, std::jthread> threads_;           // by uid; used by `thread_` only
  std::unique_ptr<k8s::ObjectWatch> watch_;
  std::jthread thread_;
};

}  // namespace sluice::executor
