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

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "catalog/job_store.h"
#include "k8s/api_client.h"
#include "k8s/object.h"
#include "k8s/pod_spec.h"
#include "k8s/training_job.h"
#include "k8s/training_job_status.h"
#include "k8s/watch.h"

namespace sluice::executor {

// A TrainingJob that a user has created, and no gateway has begun.
struct TrainingJobRequest {
  std::string name, uid;
  k8s::TrainingJobSpec spec;
  std::string source_url;  // from its Secret; errors about it never repeat any of it
};

// The row of such a job, and the version of the model that it has stored.
struct TrainingJobRow {
  catalog::Job job;
  std::optional<int64_t> version;
};

// What a gateway does for TrainingJobs, as the logins of their sources. `begin`: begins the job,
// and returns its number. `find`: its row. Unavailable: try again later.
struct TrainingJobSource {
  std::function<Result<int64_t>(const TrainingJobRequest& request)> begin;
  std::function<Result<TrainingJobRow>(const TrainingJobRequest& request, int64_t job)> find;
};

// The TrainingJobs of a namespace. Begins new ones, each on one gateway; writes errors into their
// status, and the end of those that run in the gateway's process (boosted trees), which have no
// master; reports which are deleted, suspended or late; deletes those that ended long ago.
// Thread-safe.
class TrainingJobs {
 public:
  struct Hooks {
    TrainingJobSource source;
    // A user has deleted it. `job_uid`: the label of the job's pods.
    std::function<void(const std::string& job_uid)> deleted;
    // Whether suspension is requested, and whether its master's status confirms it; called on each
    // change.
    std::function<void(const std::string& job_uid, bool wanted, bool done)> suspended;
    // It has run for longer than its activeDeadlineSeconds.
    std::function<void(const std::string& job_uid, int64_t seconds)> late;
  };
  // `holder`: unique name of this process. Does not report deletions from before.
  static Result<std::unique_ptr<TrainingJobs>> Start(k8s::ApiClient& client,
                                                     std::string namespace_name, std::string holder,
                                                     Hooks hooks, const std::stop_token& stop);
  ~TrainingJobs();
  std::map<std::string, uint64_t> watch_restarts() const { return watch_->restarts(); }

 private:
  struct Known {
    k8s::Object object;
    std::string claim;    // ClaimOf
    TimePoint claimed{};  // when first seen
    TimePoint due{};
    TimePoint ended{};  // when first seen
  };

  TrainingJobs(k8s::ApiClient& client, std::string namespace_name, std::string holder, Hooks hooks);
  void OnChange(const k8s::ObjectChange& change) EXCLUDES(mutex_);
  void Run(const std::stop_token& stop) EXCLUDES(mutex_);
  bool IsToBegin(const Known& known, const k8s::TrainingJobStatus& status, TimePoint now) const;
  Status Begin(const k8s::Object& object, const std::string& claim, const std::stop_token& stop);
  Result<TrainingJobRequest> RequestOf(const k8s::Object& object, const std::stop_token& stop);
  bool MayHaveEnded(const Known& known, const k8s::TrainingJobStatus& status, TimePoint now) const;
  Status WriteEnd(const k8s::Object& object, const std::stop_token& stop);
  Result<int64_t> BeginOnce(const TrainingJobRequest& request, const std::stop_token& stop);
  void Delete(const k8s::Object& object, const std::stop_token& stop);

  k8s::ApiClient& client_;
  const std::string namespace_, holder_;
  const Hooks hooks_;
  Mutex mutex_;
  std::condition_variable_any changed_;
  uint64_t changes_ GUARDED_BY(mutex_) = 0;
  std::map<std::string, Known> known_ GUARDED_BY(mutex_);  // by uid
  std::unique_ptr<k8s::ObjectWatch> watch_;
  std::jthread thread_;
};

// Records in its status that a job was given up, when its master is not there to do so. `reason`:
// one word, for the condition.
Status FailTrainingJob(k8s::ApiClient& client, const std::string& namespace_name,
                       const k8s::Owner& job, const std::string& reason, const std::string& why);

}  // namespace sluice::executor
