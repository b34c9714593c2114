#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "elastic/fleet/autoscaler.h"

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
  uint64_t seed = 1;
  double step_seconds = 0.25;
  double grace_seconds = 2;  // from the request to end until it is gone
  double shortest_start_seconds = 3, longest_start_seconds = 10;  // from its place until it runs
  AutoscalerOptions autoscaler = {};
};

struct WorldJob {
  std::string name;
  uint32_t min = 1, max = 1;
  int priority = 0;
  Capacity worker;
  Capacity master;  // none if it requests nothing
  Capacity server;
  uint32_t servers = 0;
  // Seconds of one worker; it trains while master and servers run.
  double work = std::numeric_limits<double>::infinity();
  // Part of the work that more workers do not speed up: n of them do n / (1 + serial (n - 1)).
  double serial = 0;
};

class ClusterWorld {
 public:
  explicit ClusterWorld(const WorldOptions& options) : options_(options), random_(options.seed) {}

  void AddNode(const std::string& name, const Capacity& capacity);
  // Its processes are gone at once.
  void LoseNode(const std::string& name);
  void SetNode(const std::string& name, bool suspect, bool cordoned);
  size_t AddJob(WorldJob job);  // arrives now; returns its number
  void EndJob(size_t job);
  // A service of this name consists of so many processes from now on.
  void SetService(const std::string& name, const Capacity& process, uint32_t count,
                  std::optional<int> priority = std::nullopt);
  // A random worker ends without warning. False: there is none.
  bool KillWorker();

  // Lets one step pass.
  void Step();
  void RunUntil(double seconds) {
    while (now_ < seconds) {
      Step();
    }
  }
  double now() const { return now_; }

  struct Fate {
    double arrived = 0;
    std::optional<double> first_worker, ended;
    double done = 0;  // of its work
  };
  const std::vector<Fate>& fates() const { return fates_; }
  const WorldJob& job(size_t number) const { return jobs_[number]; }
  size_t jobs() const { return jobs_.size(); }

  // Running now.
  uint32_t Workers(size_t job) const;
  uint32_t ServiceRunning(const std::string& name) const;
  double UsedCpu() const;        // requested by running processes
  double UsedByWorkers() const;  // of them
  double TotalCpu() const;
  // How much workers of that size could use beside services, masters and servers.
  double PackableCpu(double worker_cpu) const;
  uint64_t starts() const { return starts_; }  // of workers, so far
  uint64_t decisions() const { return decisions_; }
  const ClusterState& state() const { return state_; }
  const AutoscalerHistory& history() const { return history_; }
  // Empty if all is in order: no node holds more than it has, no job more than its largest number.
  std::string Broken() const;

 private:
  struct Life {
    double runs_at = -1;  // < 0: it has no place yet
    double gone_at = -1;  // < 0: it was not asked to end
    std::string service;
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
  bool Ready(size_t job) const;
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
  uint64_t made_ = 0, starts_ = 0, decisions_ = 0;
};

// (sum x)^2 / (n sum x^2): 1 if all are equal (Jain, Chiu and Hawe 1984).
double JainOf(const std::vector<double>& shares);

}  // namespace sluice::elastic
