#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "elastic/fleet/autoscaler.h"

namespace sluice::elastic {

// What of a node is used by whom.
struct NodeUse {
  std::string node;
  bool suspect = false, cordoned = false;
  Capacity capacity, services, jobs;  // what they request
  Capacity free;
  uint32_t workers = 0;
};
// Terminating processes still use what they have. Pure.
std::vector<NodeUse> UseOfNodes(const ClusterState& state);

struct StartForecast {
  uint32_t now = 0;   // workers that would start at once
  uint32_t soon = 0;  // that the job would have when others have given way to it
  // Until it has all that it can use, with the running jobs' speeds of now; nullopt: not known.
  std::optional<double> seconds_until_all;
  bool fits = true;  // its smallest number, if it were the only job
};
// What would become of one more job, with its servers, if it came now. Pure.
StartForecast ForecastStart(const ClusterState& state, ClusterJob job, uint32_t servers,
                            const Capacity& server, const AutoscalerOptions& options,
                            TimePoint now);

}  // namespace sluice::elastic
