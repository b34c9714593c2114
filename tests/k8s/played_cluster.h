#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "k8s/object.h"
#include "k8s/training_job_status.h"
#include "tests/k8s/tested_api_server.h"

namespace sluice::k8s {

// A cluster without its controller, played over an API server: the masters of TrainingJobs, which
// follow their grants, the kubelets of nodes that are only objects, and a scheduler, unless the
// server has its own. Every change of a player is one that the real one makes. One thread.
class PlayedCluster {
 public:
  enum class Scheduler { kPlayed, kReal };
  PlayedCluster(TestedApiServer& server, Scheduler scheduler);
  ~PlayedCluster();  // deletes all that it has made, the nodes among it

  // Names are those of the test; nodes belong to no namespace and get a prefix.
  void AddNode(const std::string& name, double cpu);
  void RemoveNode(const std::string& name);
  void Cordon(const std::string& name, bool cordoned);
  void AddJob(const std::string& name, uint32_t min, uint32_t max, int priority = 0,
              double cpu = 1);
  void EndJob(const std::string& name);
  void AddService(const std::string& name, double cpu, const std::string& more_spec = "");
  void EndService(const std::string& name);
  // The pods of all namespaces may have so many processors.
  void SetQuota(double cpu);

  // One round of all players.
  void Turn();

  // As of the last round: pods that have a node and are not ending.
  uint32_t Workers(const std::string& job) const;
  uint32_t WaitingWorkers(const std::string& job) const;
  uint32_t StartedWorkers(const std::string& job) const;    // ever
  uint32_t PreemptedWorkers(const std::string& job) const;  // ever: ended by no master
  bool Runs(const std::string& service) const;
  std::optional<Grant> GrantOf(const std::string& job) const;

 private:
  struct Pod {
    std::string name, uid, job, node, resource_version;
    double cpu = 0;
    int priority = 0;
    bool leaving = false, runs = false, unschedulable = false;
  };
  struct Job {
    std::string uid;
    double cpu = 1;
    uint32_t started = 0;
    std::set<std::string> ended;      // workers that its master has ended
    std::set<std::string> preempted;  // workers that somebody else has ended
    std::optional<Grant> grant;
  };
  std::string NodeName(const std::string& name) const;
  void Create(const Resource& resource, const std::string& where, const std::string& json);
  void Look();
  void PlayMasters();
  void PlayKubelets();
  void PlayScheduler();
  std::string PodObject(const std::string& name, const std::string& labels, double cpu,
                        const std::string& priority_class, const std::string& more_spec) const;
  std::vector<const Pod*> WorkersOf(const std::string& job) const;

  TestedApiServer& server_;
  const Scheduler scheduler_;
  std::map<std::string, double> nodes_;  // by their object's name: processors
  std::map<std::string, bool> cordoned_;
  std::map<std::string, Job> jobs_;
  std::map<std::string, Pod> pods_;  // by name, as of the last round
};

}  // namespace sluice::k8s
