#pragma once

#include <set>

#include "elastic/parameters/partition_map.h"

namespace sluice::elastic {

// The state of a parameter fleet that outlives its master: written to the job's journal before a
// server is started, and before any process uses a new map.
struct Placement {
  PartitionMap map;            // version 0: there is none yet
  std::set<ServerId> servers;  // started, and not given up
  ServerId next;               // number of the next one
  uint32_t wanted = 1;         // servers
  bool operator==(const Placement&) const = default;
};

}  // namespace sluice::elastic
