#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "elastic/fleet/autoscaler.h"
#include "k8s/cluster_objects.h"
#include "k8s/known_objects.h"
#include "k8s/training_job.h"
#include "k8s/training_job_status.h"

namespace sluice::k8s {

// What the controller knows of a cluster, in the form in which the autoscaler decides: nodes, all
// pods, TrainingJobs and quotas, each read once when it changes. An object that cannot be read
// counts as gone. Pure; one thread.
class ClusterView {
 public:
  void OnNode(const ObjectChange& change);
  void OnPod(const ObjectChange& change);
  void OnTrainingJob(const ObjectChange& change);
  void OnQuota(const ObjectChange& change);

  struct Job {
    std::string namespace_name, name;
    std::optional<Grant> grant;  // its current one
    uint32_t running = 0;        // workers that have a node and are not ending
    uint32_t waiting = 0;        // workers without a node
  };
  struct Snapshot {
    elastic::ClusterState state;
    std::vector<Job> jobs;                      // by index of state.jobs
    std::vector<std::string> waiting_services;  // uids of the foreground pods that wait
  };
  // Adds a job that has no objects yet. `pods`: one as of its workers, the master and each server,
  // none with a node. Make describes it under the name `uid`.
  void Plan(const std::string& uid, const TrainingJobSpec& spec, std::vector<PodFacts> pods);

  // The jobs are those that are neither over nor suspended by spec.suspend; their order is stable.
  // Every other pod is foreground; it waits if the scheduler has found no room for it, and room
  // alone would help.
  Snapshot Make() const;

 private:
  struct KnownJob {
    std::string uid;  // of its pods' label
    std::string namespace_name, name;
    TrainingJobSpec spec;
    TrainingJobStatus status;
    TimePoint created{};
    elastic::ThroughputCurve curve;
    bool suspended = false;       // by its grant
    std::vector<PodFacts> needs;  // master and servers of a suspended one
  };
  class Builder;
  void RememberNeeds(KnownJob& job) const;

  std::map<std::string, NodeFacts> nodes_;    // by name
  std::map<std::string, PodFacts> pods_;      // by uid
  std::map<std::string, PodFacts> workers_;   // the last one of each job, by the uid of its label
  std::map<std::string, KnownJob> jobs_;      // by uid
  std::map<std::string, QuotaFacts> quotas_;  // by uid
};

}  // namespace sluice::k8s
