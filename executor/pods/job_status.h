#pragma once

#include <condition_variable>
#include <cstdint>
#include <stop_token>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "catalog/job_store.h"
#include "elastic/job/training_job.h"
#include "k8s/api_client.h"
#include "k8s/training_job_status.h"

namespace sluice::executor {

class PodJobConfig;

// What a job's master says in the status of its TrainingJob, at most once a second and for people:
// what cannot be written is written later, and holds nobody up. Of a job without one (an earlier
// version's) nothing. Thread-safe.
class JobStatus {
 public:
  // How the job's pods are, as its fleet knows them.
  struct Pods {
    uint32_t workers = 0, servers = 0, waiting = 0;  // with places; without
    std::string waiting_for;
    bool operator==(const Pods&) const = default;
  };
  // `master`: this one's number and pod. All outlive this.
  JobStatus(k8s::ApiClient& client, const PodJobConfig& config, int64_t master,
            std::string master_pod);
  ~JobStatus();

  // What the statement asks for.
  void Asked(const std::string& model, uint32_t least, uint32_t most) EXCLUDES(mutex_);
  void OnPods(const Pods& pods) EXCLUDES(mutex_);
  void OnProgress(const elastic::Progress& progress) EXCLUDES(mutex_);
  // Writes how the job has ended, as its row says. Tries for some seconds.
  void End(const catalog::Job& row) EXCLUDES(mutex_);

 private:
  void Run(const std::stop_token& stop) EXCLUDES(mutex_);
  // Reads what there is, and writes what differs.
  Status Write(const std::stop_token& stop) EXCLUDES(mutex_);
  void Fill(k8s::TrainingJobStatus& status, const std::string& now) REQUIRES(mutex_);

  k8s::ApiClient& client_;
  const std::string namespace_, name_, uid_, selector_;
  const int64_t job_, master_;
  const std::string master_pod_;
  Mutex mutex_;
  std::condition_variable_any changed_;
  bool dirty_ GUARDED_BY(mutex_) = true;
  std::string model_ GUARDED_BY(mutex_);
  uint32_t least_ GUARDED_BY(mutex_) = 0, most_ GUARDED_BY(mutex_) = 0;
  Pods pods_ GUARDED_BY(mutex_);
  elastic::Progress progress_ GUARDED_BY(mutex_);
  catalog::Job ended_ GUARDED_BY(mutex_);  // its state is kRunning before
  std::jthread thread_;                    // last: uses the others
};

}  // namespace sluice::executor
