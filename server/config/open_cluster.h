#pragma once

#include <functional>
#include <memory>

#include "base/status.h"
#include "catalog/catalog.h"
#include "executor/cluster.h"
#include "server/config/config.h"

namespace sluice::executor {
struct TrainingJobSource;
}

namespace sluice::server {

// What a gateway does for TrainingJobs that other processes have created, on this cluster.
using TrainingJobsOn = std::function<executor::TrainingJobSource(executor::Cluster& cluster)>;

// With what pods log in, for the login that this process reads with.
using PodLogins = std::function<Result<catalog::DatabaseLogin>(const catalog::DatabaseLogin&)>;

// Where this process's jobs get their processes from, according to the configuration.
// `of_gateway`: jobs that run in processes of their own also ask this cluster for room.
// `training_jobs`: none: it begins none. `pod_login`:
// executor::PodCluster::Options.
Result<std::unique_ptr<executor::Cluster>> OpenCluster(const Config& config, bool of_gateway,
                                                       TrainingJobsOn training_jobs = {},
                                                       PodLogins pod_login = {});

}  // namespace sluice::server
