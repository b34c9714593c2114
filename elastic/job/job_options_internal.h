#pragma once

#include <string>

#include "base/status.h"
#include "elastic/master/master.h"
#include "models/model.h"

namespace sluice::catalog {
class DatasetSpec;
}

namespace sluice::plan {
class TrainPlan;
}

namespace sluice::elastic {

// The options of a plan's master. Fails if the plan is not for a network, or asks for something
// that does not exist (yet).
Result<Master::Options> MasterOptionsOf(const plan::TrainPlan& plan, size_t outputs,
                                        const catalog::DatasetSpec& dataset,
                                        const catalog::DatasetSpec* validation);
bool IsSynchronous(const plan::TrainPlan& plan);

}  // namespace sluice::elastic
