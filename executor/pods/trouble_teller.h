#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "executor/pods/kept_job.h"
#include "executor/pods/training_job_work.h"
#include "k8s/api_client.h"

namespace sluice::executor {

// Says what keeps a job's master from running where a master would: in its TrainingJob's Events and
// condition Queued, and in its row, for SHOW JOB and the statement's client. On a thread of its
// own, so that no master waits for a database. Best effort. Thread-safe.
class TroubleTeller {
 public:
  // A catalog in which the job's row is.
  struct Login {
    std::string url, secret;
  };
  using LoginOf = std::function<Login(const KeptJob::Job& job)>;
  TroubleTeller(k8s::ApiClient& client, std::string namespace_name, k8s::EventRecorder& events,
                LoginOf login_of);

  void Tell(const KeptJob::Job& job, const KeptJob::Trouble& trouble) EXCLUDES(mutex_);

 private:
  struct News {
    KeptJob::Job job;
    KeptJob::Trouble trouble;
  };
  void Run(const std::stop_token& stop) EXCLUDES(mutex_);
  Status WriteCondition(const News& news, const std::stop_token& stop);
  Status WriteRow(const News& news, const std::stop_token& stop);

  k8s::ApiClient& client_;
  const std::string namespace_;
  k8s::EventRecorder& events_;
  const LoginOf login_of_;
  Mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<News> untold_ GUARDED_BY(mutex_);
  std::jthread thread_;  // last: uses the others
};

}  // namespace sluice::executor
