#pragma once

#include "models/model.h"
#include "planner/bind_train_internal.h"
#include "planner/plan.pb.h"

// The parts of PlanTrain. Only plan_*.cc include this.
namespace sluice::planner {

// A note, where early stopping was to be.
inline constexpr char kNeverStops[] = "no early stopping: there are no validation rows";

// How long to train and in which batches. The plan's split is known.
void FillSchedule(const BoundTrain& bound, plan::TrainPlan* plan);
// When to stop before that, on which metric. The schedule is known.
void FillEarlyStopping(const BoundTrain& bound, plan::TrainPlan* plan);
// Whether a linear model is computed rather than trained: where nothing is said of how, and its
// rows, which are read again and again, stay in memory.
bool MeetsOptimum(const BoundTrain& bound, const models::Network& network,
                  const plan::TrainPlan& plan);
// The plan is to meet it: in this process, or with workers that add up passes over the rows.
void MeetOptimum(plan::TrainPlan* plan);
// Where nothing is said of how long to train, and on what: few rows are judged by folds, of
// networks and of linear models at their optimum.
void FillFolds(const BoundTrain& bound, plan::TrainPlan* plan);

// Once the strategy is known, and how the rows are cut. `network` is null for trees.
void EstimateMemory(const BoundTrain& bound, const models::Network* network, plan::TrainPlan* plan);
// A process that is given less than it takes would be started and die, again and again.
Status CheckProcessMemory(const BoundTrain& bound, const plan::TrainPlan& plan);
// Before anything of that size is allocated: what the network takes whatever the data, and of its
// tables the rows that the data can touch.
Status CheckMemory(const BoundTrain& bound, const models::Network& network, int64_t limit,
                   const plan::TrainPlan& plan);

}  // namespace sluice::planner
