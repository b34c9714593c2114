#pragma once

#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "k8s/api_client.h"
#include "k8s/api_verbs.h"
#include "k8s/training_job_status.h"
#include "k8s/watch.h"
#include "tests/simulation/shared_cluster.h"

namespace sluice::k8s {

// A cluster on a real API server, in real time: its scheduler places the pods, its controllers make
// and delete those of a service, and a `sluice controller` beside it writes the grants. Played are
// the kubelets of nodes that are only objects (a pod starts in some seconds and ends in some), the
// gateway, which creates a job's master and, when that has a node, its servers and first workers
// (executor::FirstPods), and the masters, which keep as many workers as granted. One thread.
class ScheduledCluster final : public elastic::SharedCluster {
 public:
  struct Options {
    std::string namespace_name;
    double shortest_start_seconds = 3, longest_start_seconds = 10;
    double grace_seconds = 2;
    uint64_t seed = 1;
  };
  ScheduledCluster(ApiClient& client, Options options);
  ~ScheduledCluster() override;

  void AddNode(const std::string& name, const elastic::Capacity& capacity) override;
  size_t AddJob(elastic::WorldJob job) override;
  // A Deployment. `priority` is the cluster's default.
  void SetService(const std::string& name, const elastic::Capacity& process, uint32_t count,
                  std::optional<int> priority) override;
  // Time begins with the first call.
  void RunUntil(double seconds) override EXCLUDES(mutex_);

  double now() const override;
  size_t jobs() const override { return jobs_.size(); }
  const std::vector<Fate>& fates() const override { return fates_; }
  uint32_t Workers(size_t job) const override EXCLUDES(mutex_);
  uint32_t ServiceRunning(const std::string& name) const override EXCLUDES(mutex_);
  double UsedCpu() const override EXCLUDES(mutex_);
  double TotalCpu() const override { return total_cpu_; }
  uint64_t starts() const override { return starts_; }
  size_t pods() const EXCLUDES(mutex_);
  // The steps of a job's beginning, in seconds, each from the one before; means. `trains`: its
  // master runs, too.
  struct Wait {
    double master_placed = 0, worker_placed = 0, worker_runs = 0, trains = 0;
  };
  Wait MeanWait() const;
  // Pods that the scheduler has ended for others.
  uint64_t preempted() const { return preempted_; }

 private:
  enum class Role { kMaster, kServer, kWorker, kService };
  struct Pod {
    std::string name, node, service;
    Role role = Role::kService;
    std::string job_uid;
    double cpu = 0;
    bool leaving = false, runs = false;  // as the API server says
    std::optional<double> starts, ends;  // when its kubelet will say so
    bool told_start = false, told_end = false, asked = false;
  };
  struct Job {
    elastic::WorldJob what;
    std::string name, uid;
    uint64_t made = 0;  // workers
    bool begun = false, servers_placed = false;
    std::optional<double> master_placed, worker_placed, trains;  // since when
  };
  void OnPod(const ObjectChange& change) EXCLUDES(mutex_);
  void OnTrainingJob(const ObjectChange& change) EXCLUDES(mutex_);
  void Turn() EXCLUDES(mutex_);
  void PlayKubelets(double now) EXCLUDES(mutex_);
  void PlayGateway() EXCLUDES(mutex_);
  void PlayMasters(double time) EXCLUDES(mutex_);
  void AddWorkers(const std::vector<ObjectAnswer>& made) EXCLUDES(mutex_);
  std::vector<ObjectAnswer> Create(const std::vector<Creation>& pods) EXCLUDES(mutex_);
  void Must(const std::vector<ApiAnswer>& answers) const;
  std::string Create(const Resource& resource, const std::string& where, const std::string& json);
  std::string PodOf(const Job& job, Role role, uint64_t number) const;

  ApiClient& client_;
  const Options options_;
  std::mt19937_64 random_;
  std::optional<TimePoint> begun_;
  double total_cpu_ = 0;
  uint64_t starts_ = 0, preempted_ = 0;
  std::vector<std::string> nodes_;
  std::map<std::string, bool> services_;
  std::vector<Job> jobs_;
  std::vector<Fate> fates_;

  mutable Mutex mutex_;
  std::map<std::string, Pod> pods_ GUARDED_BY(mutex_);      // by uid
  std::map<std::string, Grant> grants_ GUARDED_BY(mutex_);  // by the uid of their job
  std::unique_ptr<ObjectWatch> pod_watch_, job_watch_;
};

}  // namespace sluice::k8s
