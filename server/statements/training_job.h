#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "base/status.h"
#include "planner/pods_allowed.h"
#include "server/statements/source_pool.h"

namespace sluice::executor {
class Cluster;
struct TrainingJobRequest;
struct TrainingJobSource;
}  // namespace sluice::executor

namespace sluice::server {

// Begins the job of a TrainingJob with the login of its source, `lease`: plans its statement,
// adding what the rest of the spec says unless the statement says it itself. Returns the number of
// the job, which runs on the cluster's pods; where a job has been begun for this TrainingJob
// before, by whichever gateway, of that one. Unavailable: that one is just being begun. Errors have
// their places in the statement. `allowed`: see planner::Options.
Result<int64_t> BeginTrainingJob(executor::Cluster& cluster,
                                 const executor::TrainingJobRequest& request,
                                 SourcePool::Lease& lease,
                                 std::optional<planner::PodsAllowed> allowed);

// What a gateway does for all of them on a cluster, each with the login of its source. `sources`
// must outlive it.
std::function<executor::TrainingJobSource(executor::Cluster& cluster)> TrainingJobsOf(
    SourcePool& sources, std::optional<planner::PodsAllowed> allowed);

}  // namespace sluice::server
