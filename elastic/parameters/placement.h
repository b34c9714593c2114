#pragma once

#include <set>

#include "elastic/parameters/partition_map.h"

namespace sluice::elastic {

// What a parameter fleet remembers beyond the life of its master: kept in the job's journal before
// a server is started, and before anybody goes by a map that is new.
struct Placement {
  PartitionMap map;            // version 0: there is none yet
  std::set<ServerId> servers;  // that have been started, and not been given up
  ServerId next = 0;           // that the next one gets
  uint32_t wanted = 1;         // servers
  bool operator==(const Placement&) const = default;
};

}  // namespace sluice::elastic
