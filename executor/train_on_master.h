#pragma once

#include "base/status.h"
#include "executor/train.h"

namespace sluice::executor {

class LocalCluster;

// The gateway's side of a training on processes: starts `sluice master` with the plan, does for it
// what it wants of the cluster, passes on its progress, and returns what it committed. A
// master that is lost is followed by another, which is told what processes of the job live. On
// cancel, and at the end, all of them are ended.
Result<TrainReport> TrainOnMaster(const plan::TrainPlan& plan, Context& context, JobRecord& job,
                                  LocalCluster& cluster, const elastic::ProgressCallback& progress);

}  // namespace sluice::executor
