#pragma once

#include <vector>

#include "elastic/fleet/autoscaler.h"

namespace sluice::elastic {

// Which part of a node's processors can be of use: processes are of a few sizes, and what no
// combination of them fills is lost. Immutable.
class Fragmentation {
 public:
  // The sizes are those of the jobs' workers and of what else the jobs have many of: the one small
  // process of a job does not make use of the gaps on many nodes.
  explicit Fragmentation(const ClusterState& state);

  // Of so many free processors of a node: those that no combination of processes uses (unbounded
  // knapsack: Dantzig 1957, Operations Research 5).
  double Lost(double free_cpu) const;

 private:
  std::vector<double> usable_;  // by free processors, in steps
};

}  // namespace sluice::elastic
