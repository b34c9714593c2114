#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "elastic/fleet/cluster_state.h"

namespace sluice::elastic {

struct AutoscalerOptions;

// A job that was never measured with fewer workers than it has might do as much with fewer: a job
// that grows in one step, or shares a cluster from its start. Where another job would use some of
// its workers, that one gets a quarter of them until the job's throughput without them is known;
// if they were of use, the job gets them back.
struct KneeProbe {
  std::string job;
  uint32_t workers = 0;  // that it has meanwhile
  TimePoint since{};
};

struct KneeProbes {
  std::optional<KneeProbe> running;          // one job at a time
  std::map<std::string, uint32_t> tried_at;  // by job: how many workers it had at its last probe
};

struct LimitedJob {
  size_t job = 0;  // index
  uint32_t workers = 0;
};
// The job that has to do with so many workers now. `running`: workers by job; `limits`: their
// largest numbers; `counts`: what they would get. Pure.
std::optional<LimitedJob> ChooseProbe(const ClusterState& state, const AutoscalerOptions& options,
                                      const std::vector<uint32_t>& running,
                                      const std::vector<uint32_t>& limits,
                                      const std::vector<uint32_t>& counts, const KneeProbes& before,
                                      TimePoint now, KneeProbes& after);

}  // namespace sluice::elastic
