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

namespace sluice::executor {

// Who of a gateway's jobs may have how many workers on this machine: the autoscaler of elastic/,
// asked again whenever something happens (a job comes or goes, a worker starts or ends, a rate is
// measured), never on a timer but for the ones that the autoscaler sets. Thread-safe.
class SlotArbiter {
 public:
  struct Options {
    double slots = 0;          // processors that workers may ask for; 0: the machine's
    int64_t memory_bytes = 0;  // that workers and servers may ask for; 0: the machine's
    // Starting a local process takes a few tenths of a second.
    elastic::AutoscalerOptions autoscaler{.hysteresis_seconds = 1, .payback_seconds = 2};
  };
  struct Request {
    std::string name;
    uint32_t min = 1, max = 1;
    int priority = 0;
    double cpu = 1;            // of a worker; servers and masters take no slot
    int64_t memory_bytes = 0;  // of a worker
    uint32_t servers = 0;
    int64_t server_memory_bytes = 0;  // of each
  };
  struct Grant {
    uint32_t workers = 0;  // so many may run from now on; more than that have to go
    uint32_t wanted = 0;   // so many will be granted once there is room
  };
  using OnGrant = std::function<void(const Grant&)>;  // from the arbiter's thread; must not block

  explicit SlotArbiter(const Options& options);

  // A job's life. Enter fails when not even an empty machine has room for its smallest number of
  // workers; its first grant is that number at least.
  Result<int64_t> Enter(const Request& request, OnGrant on_grant);
  void Leave(int64_t job);
  // Answers the bytes that the worker may use: more than was asked for after others ran out of it;
  // 0: no limit. WorkerEnded takes them back.
  int64_t WorkerStarted(int64_t job);
  // Of all its processes, and of a training inside the gateway.
  int64_t memory_bytes() const { return options_.memory_bytes; }
  void WorkerEnded(int64_t job, int64_t memory_bytes, bool out_of_memory);
  void Report(int64_t job, uint32_t workers, double rows_per_second, double rows_left);

 private:
  struct Job {
    Request request;
    OnGrant on_grant;
    TimePoint arrival{};
    Grant grant;
    bool started = false;         // its servers hold their memory
    std::multiset<int64_t> live;  // workers that run, by the memory that they may use
    int out_of_memory = 0;
    uint32_t last_reported = 0;  // workers of the last report
    std::map<uint32_t, double> rates;
    std::optional<double> rows_left;
  };

  std::vector<elastic::ClusterNode> Nodes() const;
  static elastic::ClusterJob Describe(const Job& job);
  elastic::ClusterState Describe() const REQUIRES(mutex_);
  void Decide() REQUIRES(mutex_);
  void Run(const std::stop_token& stop);
  void Changed() REQUIRES(mutex_);
  // What was measured beside other jobs than now says little: a job would stay small for ever that
  // once had to share the machine.
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
  std::jthread thread_;  // last: ends before the members it uses go; runs from the first job on
};

}  // namespace sluice::executor
