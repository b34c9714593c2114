#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "elastic/fleet/capacity.h"
#include "elastic/fleet/throughput_curve.h"

namespace sluice::elastic {

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
  double weight = 1;           // relative to jobs of the same priority
  Capacity worker;             // of each worker
  AllowedNodes nodes;          // of its workers
  uint32_t granted = 0;        // workers, by the last decision; some may not have started
  int out_of_memory = 0;       // workers that ran out of memory: each next one requests more
  Throughput throughput;       // measured; empty: taken as linear
  uint32_t measured_from = 0;  // the smallest number of workers that was measured; 0: none was
  std::optional<double> rows_left;
  // It may be suspended: it writes checkpoints, and starts again from one. Suspended: it has no
  // processes, but those that still end; those that wait are what it would start with.
  bool can_suspend = false, suspended = false;
};

// Everything on which a decision depends.
struct ClusterState {
  std::vector<ClusterNode> nodes;
  std::vector<ClusterProcess> processes;
  std::vector<ClusterJob> jobs;
};

// A worker's current request: more memory after others ran out of it, but not more than the largest
// node has.
Capacity RequestOf(const ClusterJob& job, const std::vector<ClusterNode>& nodes);

// 0 at `min`, 1 at `max` (and if the two are equal).
double Fulfilment(uint32_t min, uint32_t max, uint32_t workers);

// Rows per second of `workers`, from the measurements: linear between them, from the origin to the
// first, and extrapolated from the last two.
double ThroughputAt(const ClusterJob& job, uint32_t workers);

// The smallest measured number of workers after which one more adds less than `knee` of the first
// one's throughput; nullopt: the measurements do not reach so far.
std::optional<uint32_t> KneeOf(const ClusterJob& job, double knee);

}  // namespace sluice::elastic
