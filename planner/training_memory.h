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

// Peak memory in bytes of a training's processes (resident, as VmHWM).
struct TrainingMemory {
  int64_t worker = 0;   // or the only process
  int64_t kept = 0;     // part of `worker`: rows kept for later epochs, which are optional
  int64_t server = 0;   // a parameter server; 0: there are none
  int64_t spilled = 0;  // rows kept for later epochs on disks, of all workers together
};

// Rounds to whole bytes within an integer's range.
int64_t WholeBytes(double bytes);

// Estimates the memory of `plan`'s processes: the code, the rows in use and those that are kept,
// the parameters with the optimizer's values and their copies in transit. The factors were measured
// (tests/process/memory_estimate_test.cc compares them with real processes). `plan` needs its
// model, batch size, epochs, split, strategy and rows per shard; `columns` and `statistics` are the
// select's. Pure.
TrainingMemory EstimateNetworkMemory(const plan::TrainPlan& plan, const models::Network& network,
                                     const Schema& columns,
                                     const catalog::SelectStatistics& statistics);
// The same for boosted trees, which hold the whole table in one process.
TrainingMemory EstimateTreeMemory(const plan::TrainPlan& plan, const Schema& columns,
                                  const catalog::SelectStatistics& statistics);
// The most that the trees themselves take once all are grown. Needs the model and the estimated
// rows.
double MostForestBytes(const plan::TrainPlan& plan);

}  // namespace sluice::planner
