#pragma once

#include <vector>

#include "elastic/fleet/autoscaler.h"

namespace sluice::elastic {

// Which part of a node's processors is usable: processes have a few sizes, and capacity that no
// combination of them fills is lost. Immutable.
class Fragmentation {
 public:
  // The sizes are those of the jobs' workers and of other processes that are numerous: the single
  // small process of a job does not fill the gaps on many nodes.
  explicit Fragmentation(const ClusterState& state);

  // Of this many free processors of a node, those that no combination of processes uses (unbounded
  // knapsack: Dantzig 1957, Operations Research 5).
  double Lost(double free_cpu) const;

 private:
  std::vector<double> usable_;  // by free processors, in steps
};

}  // namespace sluice::elastic
