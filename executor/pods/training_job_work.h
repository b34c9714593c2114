#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "base/status.h"
#include "catalog/job_store.h"
#include "catalog/model_store.h"
#include "elastic/job/training_job.h"
#include "k8s/api_client.h"
#include "k8s/event_recorder.h"
#include "k8s/object.h"
#include "k8s/pod_spec.h"
#include "k8s/training_job.h"
#include "k8s/training_job_status.h"

namespace sluice::executor {

// A TrainingJob that a user has created.
struct TrainingJobRequest {
  std::string name, uid;
  k8s::TrainingJobSpec spec;
  std::string source_url;  // from its Secret; errors about it never repeat any of it
};

// The row of such a job, the model that it has stored, and how far it has come.
struct TrainingJobRow {
  catalog::Job job;
  std::optional<catalog::ModelVersion> stored = {};
  std::optional<elastic::Progress> progress = {};
};

// What a gateway does for TrainingJobs, as the logins of their sources. Unavailable: try again
// later. Called by several threads at once; a call lasts as long as the database does not answer.
struct TrainingJobSource {
  // Begins the job and returns its number; that of the job that has been begun for it already, if
  // there is one (catalog::Job::request).
  std::function<Result<int64_t>(const TrainingJobRequest& request, const std::stop_token& stop)>
      begin;
  // Its row.
  std::function<Result<TrainingJobRow>(const TrainingJobRequest& request, int64_t job,
                                       const std::stop_token& stop)>
      find;
  // Ends a job that has no master, as cancelled (kCancelled) or failed. False: it has one, which
  // does that.
  std::function<Result<bool>(const TrainingJobRequest& request, int64_t job, const Status& why,
                             const std::stop_token& stop)>
      end;
};

bool HasEnded(const k8s::TrainingJobStatus& status);
// For a condition or an Event.
std::string AllMessages(const Status& status);

// What is to be done for one TrainingJob, on the thread that calls. Says in its status and its
// Events what comes of it. Thread-safe.
class TrainingJobWork {
 public:
  // `holder`: unique name of this process.
  TrainingJobWork(k8s::ApiClient& client, std::string namespace_name, std::string holder,
                  TrainingJobSource source);

  const TrainingJobSource& source() const { return source_; }
  k8s::EventRecorder& events() { return events_; }

  struct Begun {
    std::optional<TrainingJobRequest> request;  // as which its job was begun
    std::optional<int64_t> job;
    bool again = false;  // it cannot begin now; its status says why
    bool gone = false;   // it was deleted meanwhile: its job is to be ended
  };
  // Begins its job, unless another gateway has claimed it since `claim` was read.
  Result<Begun> Begin(const k8s::Object& object, const std::string& claim,
                      const std::stop_token& stop);
  // As which its job was begun. `spec`: what holds of its spec.
  Result<TrainingJobRequest> RequestOf(const k8s::Object& object, const k8s::TrainingJobSpec& spec,
                                       const std::stop_token& stop);
  // Writes of a job that runs in the gateway's process what a master would: how far it is, that it
  // is not suspended, how it has ended.
  Status TellJob(const k8s::Object& object, const k8s::TrainingJobSpec& spec,
                 const std::stop_token& stop);
  // Ends its job if that runs in the gateway's process. `late`: its status is to say so.
  Status EndJob(const k8s::Object& object, const TrainingJobRequest& request, int64_t job,
                const Status& why, bool late, const std::stop_token& stop);
  // Says what is wrong in its spec, or that nothing is (""), and that the gateway has read it.
  Status TellSpec(const k8s::Object& object, const k8s::TrainingJobSpec& spec,
                  const std::string& mistakes, const std::stop_token& stop);
  // Says that it is suspended and has not begun.
  Status TellSuspended(const k8s::Object& object, const std::stop_token& stop);
  Status Delete(const k8s::Object& object, const std::stop_token& stop);

 private:
  Result<int64_t> BeginOnce(const TrainingJobRequest& request, const std::stop_token& stop);

  k8s::ApiClient& client_;
  const std::string namespace_, holder_;
  const TrainingJobSource source_;
  k8s::EventRecorder events_;
};

// Records in its status that a job was given up, when its master is not there to do so. `reason`:
// one word, for the condition.
Status FailTrainingJob(k8s::ApiClient& client, const std::string& namespace_name,
                       const k8s::Owner& job, const std::string& reason, const std::string& why);

}  // namespace sluice::executor
