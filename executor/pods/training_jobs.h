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
#include "k8s/api_client.h"
#include "k8s/object.h"
#include "k8s/pod_spec.h"
#include "k8s/training_job.h"
#include "k8s/training_job_status.h"
#include "k8s/watch.h"

namespace sluice::executor {

// A TrainingJob that somebody has made, and that nobody has begun.
struct TrainingJobRequest {
  std::string name, uid;
  k8s::TrainingJobSpec spec;
  std::string source_url;  // of its Secret
};

// The TrainingJobs of a namespace. Begins those that nobody has begun, one gateway each; writes
// into the status what is wrong with one; says which are gone, suspended or late; deletes those
// that have ended long ago. Thread-safe.
class TrainingJobs {
 public:
  struct Hooks {
    // Begins the job, and answers with its number. Unavailable: it is tried again later.
    std::function<Result<int64_t>(const TrainingJobRequest& request)> begin;
    // Somebody has deleted it. `job_uid`: by which the job's pods are labelled.
    std::function<void(const std::string& job_uid)> deleted;
    // Whether it is asked for, and whether its master says that it is so; of each change.
    std::function<void(const std::string& job_uid, bool wanted, bool done)> suspended;
    // It has run for longer than its activeDeadlineSeconds.
    std::function<void(const std::string& job_uid, int64_t seconds)> late;
  };
  // `holder`: who we are, no other process's name. Tells `deleted` of nothing from before.
  static Result<std::unique_ptr<TrainingJobs>> Start(k8s::ApiClient& client,
                                                     std::string namespace_name, std::string holder,
                                                     Hooks hooks, const std::stop_token& stop);
  ~TrainingJobs();
  std::map<std::string, uint64_t> watch_restarts() const { return watch_->restarts(); }

 private:
  struct Known {
    k8s::Object object;
    std::string claim;    // ClaimOf
    TimePoint claimed{};  // seen first
    TimePoint due{};
    TimePoint ended{};  // seen first
  };

  TrainingJobs(k8s::ApiClient& client, std::string namespace_name, std::string holder, Hooks hooks);
  void OnChange(const k8s::ObjectChange& change) EXCLUDES(mutex_);
  void Run(const std::stop_token& stop) EXCLUDES(mutex_);
  bool IsToBegin(const Known& known, const k8s::TrainingJobStatus& status, TimePoint now) const;
  Status Begin(const k8s::Object& object, const std::string& claim, const std::stop_token& stop);
  Result<TrainingJobRequest> RequestOf(const k8s::Object& object, const std::stop_token& stop);
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

// Says in its status that a job was given up, where its master is not there to say so. `reason`: a
// word, of the condition.
Status FailTrainingJob(k8s::ApiClient& client, const std::string& namespace_name,
                       const k8s::Owner& job, const std::string& reason, const std::string& why);

}  // namespace sluice::executor
