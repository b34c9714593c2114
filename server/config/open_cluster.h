#pragma once

#include <memory>

#include "base/status.h"
#include "executor/cluster.h"
#include "server/config/config.h"

namespace sluice::server {

// Where the jobs of this process get their processes from, as the configuration says.
// `of_gateway`: jobs that live in processes of their own ask it for room, too.
Result<std::unique_ptr<executor::Cluster>> OpenCluster(const Config& config, bool of_gateway);

}  // namespace sluice::server
