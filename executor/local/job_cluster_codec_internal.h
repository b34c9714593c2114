#pragma once

#include <string>

#include "base/status.h"
#include "elastic/fleet/fleet.h"
#include "executor/local/job_cluster.h"
#include "executor/local/job_cluster.pb.h"

// Converts a JobCluster's requests and events to and from their messages.
namespace sluice::executor {

LaunchRequest ToProto(const elastic::ProcessSpec& spec);
elastic::ProcessSpec FromProto(const LaunchRequest& proto);

FleetEventProto ToProto(const elastic::FleetEvent& event);
elastic::FleetEvent FromProto(const FleetEventProto& proto);

FinishRequest ToProto(const Result<std::string>& answer);
Result<std::string> FromProto(const FinishRequest& proto);

// The sender may be another build, or broken: an unknown role becomes a worker.
elastic::Role RoleOf(int number);

}  // namespace sluice::executor
