#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "elastic/fleet/cluster_state.h"
#include "elastic/fleet/growth_caution.h"
#include "elastic/fleet/knee_probe.h"

namespace sluice::elastic {

struct AutoscalerOptions {
  double load = 1;  // fraction of the whole cluster's capacity that may be used
  // More workers are started only when there has been room for them for a while, which begins at
  // the first figure and doubles up to the second where room comes and goes, which is not worth the
  // starts (growth_caution.h). A reduction takes effect at once.
  double first_wait_seconds = 0.5;
  double hysteresis_seconds = 4;
  // A worker that adds less than this fraction of the first one's throughput is past the knee.
  double knee = 0.2;
  // The time that a start takes and has to pay back: a job that is over sooner gets no more
  // workers.
  double payback_seconds = 10;
  // A job is suspended for one that has waited for this long, and starts again when there has been
  // room for this long: a checkpoint and a start cost as much.
  double suspension_seconds = 10;
  // A running worker is worth this much more than one that would have to be started.
  double stickiness = 0.05;
};

// What is remembered from one decision to the next.
struct AutoscalerHistory {
  // By job: since when there has been room for more workers; since when it has had none for its
  // smallest number, or since it was found that no suspension would help it; since when a suspended
  // one could start again.
  std::map<std::string, TimePoint> wants_more_since, blocked_since, fits_since;
  std::map<std::string, GrowthCaution> growth;  // by job, too
  KneeProbes probes;
};

struct ScalingDecision {
  struct Target {
    uint32_t workers = 0;  // 0: it waits, or continues later
    Capacity worker;       // the request of each worker to start
    std::string reason;    // for people: why it is this number
    bool suspend = false;  // it writes a checkpoint and ends all its processes, until this is false
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
//    get equal shares (proportional fairness: this maximises the sum of weight x log throughput).
//    A job whose knee may lie below what it has is tried with fewer (knee_probe.h);
// 3. a running worker keeps its place in preference to starting another; workers that have to go
//    are those that lose the least: on a suspect node, with the least work open, the youngest;
// 4. where the workers of lower priority are not enough for a job's smallest number, jobs of lower
//    priority that can be are suspended, the lowest first. A suspended job keeps its rank: others
//    are suspended for it, too, and none starts where it is about to.
// A terminating process holds its place until it is gone, but is not part of the plan.
ScalingDecision Autoscale(const ClusterState& state, const AutoscalerOptions& options,
                          const AutoscalerHistory& history, TimePoint now);

}  // namespace sluice::elastic
