#pragma once

#include "base/status.h"
#include "executor/train.h"

namespace sluice::executor {

// The gateway's side of a training on processes: starts `sluice master` with the plan, passes on
// its progress, and returns what it committed. Stops it (and with it the whole fleet) on cancel.
Result<TrainReport> TrainOnMaster(const plan::TrainPlan& plan, Context& context, JobRecord& job,
                                  const elastic::ProgressCallback& progress);

}  // namespace sluice::executor
