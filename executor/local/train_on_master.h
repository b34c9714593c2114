#pragma once

#include <string>

#include "base/status.h"
#include "executor/processes/room.h"
#include "executor/training/train_report.h"

namespace sluice::executor {

struct Context;
class JobRecord;
class LocalCluster;

// The room that a training on processes asks for.
Room::Request RoomFor(const plan::TrainPlan& plan, const std::string& job_name);

// The gateway's side of a training on processes: starts `sluice master` with the plan, performs its
// requests to the cluster, passes on its progress, and returns what it committed. A lost master is
// followed by another, which is told which processes of the job live. All of them are ended on
// cancel and at the end.
Status TrainOnMaster(const plan::TrainPlan& plan, Context& context, JobRecord& job,
                     LocalCluster& cluster, const elastic::ProgressCallback& progress);

}  // namespace sluice::executor
