#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "elastic/fleet/autoscaler.h"

namespace sluice::elastic {

// What led to a job's number of workers.
struct ShareFacts {
  size_t job = 0;                      // index
  uint32_t running = 0, workers = 0;   // now, and as decided
  uint32_t wanted = 0;                 // as decided if it need not be patient
  bool services_need_room = false;     // some are put where workers run
  bool higher_priority_grows = false;  // a job of a higher priority starts workers
};

// "1 worker", "2 workers".
std::string CountWorkers(int64_t count);
// For people: "a service needs the room". Pure.
std::string ReasonOfShare(const ClusterState& state, const AutoscalerOptions& options,
                          const ShareFacts& facts);

}  // namespace sluice::elastic
