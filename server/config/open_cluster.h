#pragma once

#include <functional>
#include <memory>

#include "base/status.h"
#include "executor/cluster.h"
#include "server/config/config.h"

namespace sluice::executor {
struct TrainingJobSource;
}

namespace sluice::server::pgwire {
class TicketOffice;
}

namespace sluice::server {

// What a gateway does for TrainingJobs that other processes have created, on this cluster.
using TrainingJobsOn = std::function<executor::TrainingJobSource(executor::Cluster& cluster)>;

// Where this process's jobs get their processes from, according to the configuration.
// `of_gateway`: jobs that run in processes of their own also ask this cluster for room.
// `training_jobs`: none: it begins none. `tickets`: of this gateway's door; none: it has no door.
Result<std::unique_ptr<executor::Cluster>> OpenCluster(
    const Config& config, bool of_gateway, TrainingJobsOn training_jobs = {},
    std::shared_ptr<const pgwire::TicketOffice> tickets = nullptr);

}  // namespace sluice::server
