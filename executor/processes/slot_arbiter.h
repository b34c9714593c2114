#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "elastic/fleet/autoscaler.h"
#include "elastic/fleet/forecast.h"
#include "executor/processes/room.h"

namespace sluice::executor {

// Distributes this machine's workers among a gateway's jobs, with the autoscaler of elastic/, which
// is consulted whenever something happens (a job comes or goes, a worker starts or ends, a rate is
// measured); the only timers are those that the autoscaler sets. Thread-safe.
class SlotArbiter final : public Room {
 public:
  struct Options {
    double slots = 0;  // as RoomSize
    int64_t memory_bytes = 0;
    // Of the memory, the trainings in their jobs' own processes, which nothing makes smaller, have
    // at most half for each role.
    bool shared_by_roles = false;
    // Starting a local process takes a few tenths of a second.
    elastic::AutoscalerOptions autoscaler{.hysteresis_seconds = 1, .payback_seconds = 2};
  };

  explicit SlotArbiter(const Options& options);

  Result<int64_t> Enter(const Request& request, OnGrant on_grant) override;
  void Leave(int64_t job) override;
  int64_t WorkerStarted(int64_t job) override;
  void WorkerEnded(int64_t job, int64_t memory_bytes, bool out_of_memory) override;
  void Report(int64_t job, uint32_t workers, double rows_per_second, double rows_left) override;
  int64_t memory_bytes() const override { return options_.memory_bytes; }

  // The machine as a cluster of one node.
  elastic::ClusterState State() const EXCLUDES(mutex_);
  // What would become of the job if it entered now.
  elastic::StartForecast Forecast(const Request& request) const EXCLUDES(mutex_);

  // What a job in a process of its own already has.
  struct Holdings {
    std::vector<int64_t> live;  // running workers, by their memory limits
    int out_of_memory = 0;
    uint32_t granted = 0;
  };
  // Enters a job that an earlier arbiter has granted its workers: it keeps them, even without room.
  int64_t Return(const Request& request, const Holdings& holdings, OnGrant on_grant);
  // Sets its workers, instead of WorkerStarted and WorkerEnded.
  void SetWorkers(int64_t job, const Holdings& holdings);

 private:
  struct Job {
    Request request;
    OnGrant on_grant;
    TimePoint arrival{};
    Grant grant;
    bool started = false;         // its servers occupy their memory
    std::multiset<int64_t> live;  // running workers, by their memory limits
    int out_of_memory = 0;
    elastic::ThroughputCurve curve;
    std::optional<double> rows_left;
  };

  int64_t Add(Job job) REQUIRES(mutex_);
  // The jobs that do not begin yet, whatever room there is, for others of their role.
  std::set<int64_t> HeldBack() const REQUIRES(mutex_);
  std::vector<elastic::ClusterNode> Nodes() const;
  static elastic::ClusterJob Describe(const Job& job);
  void Describe(const Job& job, elastic::ClusterState& state) const;
  elastic::ClusterState Describe(const std::set<int64_t>& without) const REQUIRES(mutex_);
  void Decide() REQUIRES(mutex_);
  void Run(const std::stop_token& stop);
  void Changed() REQUIRES(mutex_);
  // Rates measured next to a different set of jobs mean little: a job that once had to share the
  // machine would stay small for ever.
  void ForgetRates() REQUIRES(mutex_);

  const Options options_;
  const SteadyClock clock_;
  mutable Mutex mutex_;
  std::condition_variable_any changed_;
  bool dirty_ GUARDED_BY(mutex_) = false;
  int64_t next_ GUARDED_BY(mutex_) = 1;
  std::map<int64_t, Job> jobs_ GUARDED_BY(mutex_);
  elastic::AutoscalerHistory history_ GUARDED_BY(mutex_);
  std::optional<TimePoint> look_again_ GUARDED_BY(mutex_);
  std::jthread thread_;  // last: ends before members that it uses; runs from the first job on
};

}  // namespace sluice::executor
