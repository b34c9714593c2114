#pragma once

#include "elastic/fleet/fleet.h"
#include "elastic/job/training_job.h"
#include "executor/job_cluster.h"
#include "executor/job_cluster.pb.h"

// How what a JobCluster is asked and tells travels.
namespace sluice::executor {

LaunchRequest ToProto(const elastic::ProcessSpec& spec);
elastic::ProcessSpec FromProto(const LaunchRequest& proto);

FleetEventProto ToProto(const elastic::FleetEvent& event);
elastic::FleetEvent FromProto(const FleetEventProto& proto);

ProgressProto ToProto(const elastic::Progress& progress);
elastic::Progress FromProto(const ProgressProto& proto);

FinishRequest ToProto(const JobEnd& end);
JobEnd FromProto(const FinishRequest& proto);

// Of a message whose sender may be of another build, or mad: what is not known is a worker.
elastic::Role RoleOf(int number);

}  // namespace sluice::executor
