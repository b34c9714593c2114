#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "elastic/fleet/autoscaler.h"
#include "tests/simulation/shared_cluster.h"

// A cluster on virtual time: nodes, a scheduler that places as that of Kubernetes does, processes
// that take time to start and to end, jobs that have work to do, and services.
namespace sluice::elastic {

struct WorldOptions {
  // kFixed: each job asks for its largest number of workers at once and waits for them one by one.
  // kGang: the same, but it begins only when there is room for all of them.
  enum class Scaling { kAutoscaler, kFixed, kGang };
  // kPlanned: a worker starts on the node that the decision has found for it. kScheduler: on the
  // emptiest one, as Kubernetes does by default.
  enum class Placing { kPlanned, kScheduler };

  Scaling scaling = Scaling::kAutoscaler;
  Placing placing = Placing::kPlanned;
  // A job requests workers only when its master and servers have places, and more than the first
  // two only when its master runs, as on Kubernetes.
  bool master_first = false;
  uint64_t seed = 1;
  double step_seconds = 0.25;
  double grace_seconds = 2;  // from the request to end until it is gone
  double shortest_start_seconds = 3, longest_start_seconds = 10;  // from its place until it runs
  AutoscalerOptions autoscaler = {};
};

class ClusterWorld final : public SharedCluster {
 public:
  explicit ClusterWorld(const WorldOptions& options) : options_(options), random_(options.seed) {}

  void AddNode(const std::string& name, const Capacity& capacity) override;
  // Its processes are gone at once.
  void LoseNode(const std::string& name);
  void SetNode(const std::string& name, bool suspect, bool cordoned);
  size_t AddJob(WorldJob job) override;
  void EndJob(size_t job);
  void SetService(const std::string& name, const Capacity& process, uint32_t count,
                  std::optional<int> priority) override;
  // A random worker ends without warning. False: there is none.
  bool KillWorker();

  // Lets one step pass.
  void Step();
  void RunUntil(double seconds) override {
    while (now_ < seconds) {
      Step();
    }
  }
  double now() const override { return now_; }

  const std::vector<Fate>& fates() const override { return fates_; }
  const WorldJob& job(size_t number) const { return jobs_[number]; }
  size_t jobs() const override { return jobs_.size(); }

  uint32_t Workers(size_t job) const override;
  uint32_t ServiceRunning(const std::string& name) const override;
  double UsedCpu() const override;
  double UsedByWorkers() const;  // of that
  double TotalCpu() const override;
  // How much workers of that size could use beside services, masters and servers.
  double PackableCpu(double worker_cpu) const;
  uint64_t starts() const override { return starts_; }
  uint64_t decisions() const { return decisions_; }
  uint64_t suspensions() const { return suspensions_; }
  bool Suspended(size_t job) const;
  const ClusterState& state() const { return state_; }
  const AutoscalerHistory& history() const { return history_; }
  // Empty if all is in order: no node holds more than it has, no job more than its largest number.
  std::string Broken() const;

 private:
  struct Life {
    double runs_at = -1;  // < 0: it has no place yet
    double gone_at = -1;  // < 0: it was not asked to end
    std::string service;
    bool master = false;
  };
  static TimePoint At(double seconds) {
    return std::chrono::duration_cast<TimePoint>(std::chrono::duration<double>(seconds));
  }
  bool Running(size_t process) const {
    return lives_[process].runs_at >= 0 && lives_[process].runs_at <= now_;
  }
  size_t AddProcess(int job, bool worker, const Capacity& request);
  void Put(size_t process, int node);
  void End(size_t process);
  void Erase(size_t process);
  void Collect();
  void Train();
  void Schedule();
  void ScheduleGangs();
  std::vector<Capacity> Room() const;
  std::optional<int> Emptiest(const std::vector<Capacity>& room,
                              const ClusterProcess& process) const;
  void Scale();
  void Suspend(const ScalingDecision& decision);
  void AddMasterAndServers(int index);
  bool Ready(size_t job) const;
  bool MayRequestWorker(int index) const;
  double RateOf(size_t job, uint32_t workers) const;
  int IndexOf(size_t job) const;

  const WorldOptions options_;
  std::mt19937_64 random_;
  double now_ = 0;
  bool changed_ = true;
  std::optional<TimePoint> look_again_;
  double decided_ = -1;
  ClusterState state_;           // state_.jobs: those that are not over
  std::vector<size_t> numbers_;  // of state_.jobs
  std::vector<Life> lives_;      // of state_.processes
  std::vector<WorldJob> jobs_;
  std::vector<Fate> fates_;
  std::vector<std::map<uint32_t, double>> curves_;   // measured, by job
  std::vector<std::pair<uint32_t, double>> steady_;  // by job: workers, since when
  AutoscalerHistory history_;
  uint64_t made_ = 0, starts_ = 0, decisions_ = 0, suspensions_ = 0;
};

}  // namespace sluice::elastic
