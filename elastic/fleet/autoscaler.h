#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace sluice::elastic {

// What a node has and a process asks for.
struct Capacity {
  double cpu = 0;
  int64_t memory_bytes = 0;
  double gpu = 0;

  bool Fits(const Capacity& request) const;
  Capacity& operator+=(const Capacity& other);
  Capacity& operator-=(const Capacity& other);
};
Capacity operator*(const Capacity& one, double times);

struct ClusterNode {
  std::string name;
  Capacity capacity;
  bool suspect = false;  // straggles, or breaks what runs there: nothing new is put on it
};

// A process that runs, ends, or waits for a place.
struct ClusterProcess {
  static constexpr int kNone = -1;

  std::string name;
  int node = kNone;  // index; kNone: waits
  Capacity request;
  int job = kNone;      // index; kNone: foreground, not ours
  bool worker = false;  // one of the elastic part of its job: a master or a server is not
  bool terminating = false;
  TimePoint started{};
  double cost = 0;  // what is handed back when it is stopped, in any unit: rows of an open task
};

struct ClusterJob {
  std::string name;
  uint32_t min = 1, max = 1;
  int priority = 0;
  TimePoint arrival{};
  double weight = 1;      // against jobs of the same priority
  Capacity worker;        // of each worker
  int out_of_memory = 0;  // workers that ended so: each next one asks for more
  // Measured: workers and rows per second with them, ascending. Empty: taken as linear.
  std::vector<std::pair<uint32_t, double>> throughput;
  std::optional<double> rows_left;
};

// Everything that a decision depends on.
struct ClusterState {
  std::vector<ClusterNode> nodes;
  std::vector<ClusterProcess> processes;
  std::vector<ClusterJob> jobs;
};

struct AutoscalerOptions {
  double load = 1;  // of the whole cluster's capacity, that may be asked for
  // More workers are started only when there has been room for them so long: room that comes and
  // goes is not worth the starts. Fewer are wanted at once.
  double hysteresis_seconds = 4;
  // A worker that adds less than this, of what the first one does, is past the knee.
  double knee = 0.2;
  // What a start takes and has to pay back: a job that is over sooner gets no more workers.
  double payback_seconds = 10;
  // A worker that runs is worth so much more than one that would have to be started.
  double stickiness = 0.05;
};

// What has to be remembered from one decision to the next.
struct AutoscalerHistory {
  std::map<std::string, TimePoint> wants_more_since;  // by job
};

struct ScalingDecision {
  struct Target {
    uint32_t workers = 0;  // 0: it waits, or goes on later
    Capacity worker;       // what each of those that are started asks for
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
  std::optional<TimePoint> look_again;  // when nothing happens before
};

// Who gets how many workers. A pure function; elastic.md section 6:
// 1. foreground processes come first, then, by priority and arrival, each job's servers and its
//    smallest number of workers, all or nothing;
// 2. the rest goes worker by worker, higher priorities first, to the job whose throughput it raises
//    by the largest fraction, times its weight, up to its largest number or its knee: equal jobs
//    get equal shares (proportional fairness: this maximises the sum of weight x log throughput);
// 3. a worker that runs keeps its place before another one is started; whoever has to go is who
//    loses the least: on a suspect node, with the least work open, the youngest.
// A terminating process holds its place until it is gone, but the plan is made without it.
ScalingDecision Autoscale(const ClusterState& state, const AutoscalerOptions& options,
                          const AutoscalerHistory& history, TimePoint now);

// What a worker of the job asks for now: more memory after others ran out of it, but not more than
// the largest node has.
Capacity RequestOf(const ClusterJob& job, const std::vector<ClusterNode>& nodes);

// 0 at `min`, 1 at `max` (and when there is nothing between them).
double Fulfilment(uint32_t min, uint32_t max, uint32_t workers);

// Rows per second of `workers`, from what was measured: straight lines between measurements, from
// the origin to the first, and on from the last two.
double ThroughputAt(const ClusterJob& job, uint32_t workers);

}  // namespace sluice::elastic
