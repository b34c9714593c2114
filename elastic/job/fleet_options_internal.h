#pragma once

#include "base/status.h"
#include "elastic/master/master.h"
#include "elastic/master/parameter_fleet.h"

namespace sluice::models {
class Network;
}

namespace sluice::plan {
class Strategy;
}

namespace sluice::elastic {

struct JobEndpoint;
struct TrainingJob;

// The options of the master of a job on a fleet. Fails as MasterOptionsOf does.
Result<Master::Options> FleetOptionsOf(const TrainingJob& job, const JobEndpoint& endpoint,
                                       size_t outputs);
// Those of its parameter servers. `placement`: where an earlier master had placed the partitions,
// if there was one.
ParameterFleet::Options ParameterOptionsOf(const TrainingJob& job, const JobEndpoint& endpoint,
                                           Placement placement);
// As many servers as the job may ever have.
uint32_t MostServers(const plan::Strategy& strategy);

}  // namespace sluice::elastic
