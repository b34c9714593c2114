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

// Where the jobs of this process get their processes from, as the configuration says.
// `of_gateway`: jobs that live in processes of their own ask it for room, too.
// `begin`: how a gateway begins a TrainingJob that somebody else has made; none: it does not.
using BeginRequest = std::function<Result<int64_t>(executor::Cluster& cluster,
                                                   const executor::TrainingJobRequest& request)>;
Result<std::unique_ptr<executor::Cluster>> OpenCluster(const Config& config, bool of_gateway,
                                                       BeginRequest begin = {});

}  // namespace sluice::server
