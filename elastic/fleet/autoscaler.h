#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace sluice::elastic {

inline constexpr size_t kMaxFurtherResources = 4;

// The capacity of a node, or the request of a process.
struct Capacity {
  double cpu = 0;
  int64_t memory_bytes = 0;
  double gpu = 0;
  double processes = 0;  // how many a node takes; a process requests one where that is limited
  std::array<double, kMaxFurtherResources> further{};  // of kinds that only the caller knows

  bool Fits(const Capacity& request) const;
  Capacity& operator+=(const Capacity& other);
  Capacity& operator-=(const Capacity& other);
};
Capacity operator*(const Capacity& one, double times);

struct ClusterNode {
  std::string name;
  Capacity capacity;
  bool suspect = false;   // slow, or breaks its processes: nothing new is placed on it
  bool cordoned = false;  // nothing new is placed on it; what runs there stays
};

// Which nodes a process may run on, by their index; null: all of them.
using AllowedNodes = std::shared_ptr<const std::vector<bool>>;

// A process that runs, is ending, or waits for a place.
struct ClusterProcess {
  static constexpr int kNone = -1;

  std::string name;
  int node = kNone;  // index; kNone: waits
  Capacity request;
  int job = kNone;      // index; kNone: foreground, not ours
  bool worker = false;  // part of the elastic share of its job: a master or a server is not
  bool terminating = false;
  TimePoint started{};
  double cost = 0;  // work handed back when it is stopped, in any unit: rows of an open task
  AllowedNodes nodes;
  // A foreground process that waits takes places only from workers of a lower priority; without
  // one, from all.
  std::optional<int> priority;
};

struct ClusterJob {
  std::string name;
  uint32_t min = 1, max = 1;
  int priority = 0;
  TimePoint arrival{};
  double weight = 1;      // relative to jobs of the same priority
  Capacity worker;        // of each worker
  AllowedNodes nodes;     // of its workers
  int out_of_memory = 0;  // workers that ran out of memory: each next one requests more
  // Measured: workers and rows per second with them, ascending. Empty: taken as linear.
  std::vector<std::pair<uint32_t, double>> throughput;
  std::optional<double> rows_left;
};

// Everything on which a decision depends.
struct ClusterState {
  std::vector<ClusterNode> nodes;
  std::vector<ClusterProcess> processes;
  std::vector<ClusterJob> jobs;
};

struct AutoscalerOptions {
  double load = 1;  // fraction of the whole cluster's capacity that may be used
  // More workers are started only when there has been room for them for this long: room that comes
  // and goes is not worth the starts. A reduction takes effect at once.
  double hysteresis_seconds = 4;
  // A worker that adds less than this fraction of the first one's throughput is past the knee.
  double knee = 0.2;
  // The time that a start takes and has to pay back: a job that is over sooner gets no more
  // workers.
  double payback_seconds = 10;
  // A running worker is worth this much more than one that would have to be started.
  double stickiness = 0.05;
};

// What is remembered from one decision to the next.
struct AutoscalerHistory {
  std::map<std::string, TimePoint> wants_more_since;  // by job
};

struct ScalingDecision {
  struct Target {
    uint32_t workers = 0;  // 0: it waits, or continues later
    Capacity worker;       // the request of each worker to start
  };
  struct Start {
    int job = 0;
    int node = 0;
  };
  std::vector<Target> targets;               // by job
  std::vector<size_t> victims;               // workers to stop, as indices of processes
  std::vector<Start> starts;                 // of workers; only where there is room already
  std::vector<std::pair<size_t, int>> puts;  // waiting processes and where there is room for them
  AutoscalerHistory history;
  std::optional<TimePoint> look_again;  // if nothing happens before
};

// How many workers each job gets. A pure function:
// 1. foreground processes come first, then, by priority and arrival, each job's servers and its
//    smallest number of workers, all or nothing;
// 2. the rest goes worker by worker, higher priorities first, to the job whose throughput it raises
//    by the largest fraction, times its weight, up to its largest number or its knee: equal jobs
//    get equal shares (proportional fairness: this maximises the sum of weight x log throughput);
// 3. a running worker keeps its place in preference to starting another; workers that have to go
//    are those that lose the least: on a suspect node, with the least work open, the youngest.
// A terminating process holds its place until it is gone, but is not part of the plan.
ScalingDecision Autoscale(const ClusterState& state, const AutoscalerOptions& options,
                          const AutoscalerHistory& history, TimePoint now);

// A worker's current request: more memory after others ran out of it, but not more than the largest
// node has.
Capacity RequestOf(const ClusterJob& job, const std::vector<ClusterNode>& nodes);

// 0 at `min`, 1 at `max` (and if the two are equal).
double Fulfilment(uint32_t min, uint32_t max, uint32_t workers);

// Rows per second of `workers`, from the measurements: linear between them, from the origin to the
// first, and extrapolated from the last two.
double ThroughputAt(const ClusterJob& job, uint32_t workers);

}  // namespace sluice::elastic
