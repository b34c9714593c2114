#pragma once

#include <cstdint>
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
// the job, which runs on the cluster's pods. Errors have their places in the statement. `allowed`:
// see planner::Options.
Result<int64_t> BeginTrainingJob(executor::Cluster& cluster,
                                 const executor::TrainingJobRequest& request,
                                 SourcePool::Lease& lease,
                                 std::optional<planner::PodsAllowed> allowed);

// All of them, each with the login of its source. `sources` and `cluster` must outlive it.
executor::TrainingJobSource TrainingJobsOf(SourcePool& sources, executor::Cluster& cluster,
                                           std::optional<planner::PodsAllowed> allowed);

}  // namespace sluice::server
