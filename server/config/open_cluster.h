#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/status.h"
#include "executor/cluster.h"
#include "server/config/config.h"

namespace sluice::executor {
struct TrainingJobRequest;
}

namespace sluice::server {

// Where this process's jobs get their processes from, according to the configuration.
// `of_gateway`: jobs that run in processes of their own also ask this cluster for room.
// `begin`: how a gateway begins a TrainingJob that another process has created; none: it cannot.
using BeginRequest = std::function<Result<int64_t>(executor::Cluster& cluster,
                                                   const executor::TrainingJobRequest& request)>;
Result<std::unique_ptr<executor::Cluster>> OpenCluster(const Config& config, bool of_gateway,
                                                       BeginRequest begin = {});

}  // namespace sluice::server
