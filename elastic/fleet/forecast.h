#pragma once

#include <cstddef>
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
  uint32_t processes = 0;  // of jobs
};
// Terminating processes still use what they have. Pure.
std::vector<NodeUse> UseOfNodes(const ClusterState& state);

struct StartForecast {
  uint32_t wanted = 0;  // the most workers that it may have
  uint32_t now = 0;     // workers that would start at once
  uint32_t soon = 0;    // that the job would have when others have given way to it
  uint32_t useful = 0;  // that it would have if it were the only job
  // Until it has all that are useful, with the running jobs' speeds of now; nullopt: not known.
  std::optional<double> seconds_until_all;
  std::string reason;  // for people: why `soon` is this number

  // Its smallest number, if it were the only job.
  bool fits() const { return useful > 0; }
};
// What would become of a job of `state` that has not begun, and comes after all the others: its
// master and servers are among the processes that wait, and it has no workers. Pure.
StartForecast ForecastStart(ClusterState state, size_t job, const AutoscalerOptions& options,
                            TimePoint now);
// For people: "2 of 8 workers at once, 1 more when other jobs have made room; 5 wait: other jobs
// have their share; all 8 in about 40 s". Pure.
std::string DescribeStart(const StartForecast& forecast);

}  // namespace sluice::elastic
