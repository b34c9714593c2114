#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "catalog/job_store.h"
#include "elastic/fleet/fleet.h"
#include "elastic/job/fleet_job.h"
#include "executor/master.pb.h"
#include "executor/train.h"

// How a gateway and the master of one of its jobs put what they say into messages.
namespace sluice::executor {

MasterMessage ToMessage(const elastic::Progress& progress);
elastic::Progress FromMessage(const ProgressMessage& message);

MasterMessage ToMessage(const TrainReport& report, const catalog::Job& job);
TrainReport FromMessage(const OutcomeMessage& outcome, int64_t job);

void ToMessage(const Status& error, ErrorMessage* message);
Status FromMessage(const ErrorMessage& error);

LaunchMessage ToMessage(const elastic::ProcessSpec& spec);
elastic::ProcessSpec FromMessage(const LaunchMessage& message);

EventMessage ToMessage(const elastic::FleetEvent& event);
elastic::FleetEvent FromMessage(const EventMessage& message);

void ToConfig(const elastic::JobEndpoint& endpoint, MasterConfig* config);
elastic::JobEndpoint EndpointOf(const MasterConfig& config, std::string job_name);

}  // namespace sluice::executor
