#pragma once

#include <cstdint>

#include "base/row_batch.h"

namespace sluice::catalog {
struct SelectStatistics;
}
namespace sluice::models {
class Network;
}
namespace sluice::plan {
class TrainPlan;
}

namespace sluice::planner {

// Memory in bytes that a training's processes have at their peak (resident, as VmHWM).
struct TrainingMemory {
  int64_t worker = 0;  // or the only process
  int64_t kept = 0;    // of `worker`: rows kept for later epochs, which it can do without
  int64_t server = 0;  // a parameter server; 0: there are none
};

// A number of bytes that an integer holds, whatever a statement asks for.
int64_t WholeBytes(double bytes);

// What the processes of `plan` will take: the code, the rows in hand and those that are kept, the
// parameters with the optimizer's values and their copies on the way. The factors were measured
// (tests/process/memory_estimate_test.cc holds real processes against them). `plan` needs its
// model, batch size, epochs, split, strategy and rows per shard; `columns` and `statistics` are the
// select's. Pure.
TrainingMemory EstimateNetworkMemory(const plan::TrainPlan& plan, const models::Network& network,
                                     const Schema& columns,
                                     const catalog::SelectStatistics& statistics);
// The same for boosted trees, which hold the whole table in one process.
TrainingMemory EstimateTreeMemory(const plan::TrainPlan& plan,
                                  const catalog::SelectStatistics& statistics);

}  // namespace sluice::planner
