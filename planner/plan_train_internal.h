#pragma once

#include "models/model.h"
#include "planner/bind_train_internal.h"
#include "planner/plan.pb.h"

// The parts of PlanTrain. Only plan_*.cc include this.
namespace sluice::planner {

// The note for plans that would stop early if they had validation rows.
inline constexpr char kNeverStops[] = "no early stopping: there are no validation rows";

// For a user-defined model type: its source becomes the model's graph. One in Python is compiled,
// unless its compiled form was kept, and the form is kept.
Status ImportUserType(const BoundTrain& bound, const Options& options, plan::TrainPlan* plan);

// Sets the length of the training and its batches. The plan's split is known.
void FillSchedule(const BoundTrain& bound, plan::TrainPlan* plan);
// Sets when to stop sooner, and on which metric. The schedule is known.
// train.early_stopping_metric, if it is given.
Status CheckStoppingMetric(const AttributeSet& attributes, const models::ModelSpec& model);
void FillEarlyStopping(const BoundTrain& bound, plan::TrainPlan* plan);
// Whether workers can train these trees: libxgboost's own, and those that go on from a model, train
// in one process.
bool GrownByWorkers(const BoundTrain& bound, const plan::TrainPlan& plan);

// Whether a linear model is trained to its optimum: if the statement does not say how to train, and
// its rows, which are read many times, fit in memory.
bool TrainsToOptimum(const BoundTrain& bound, const models::Network& network,
                     const plan::TrainPlan& plan);
// Plans that: in this process, or with workers that add up passes over the rows.
void TrainToOptimum(plan::TrainPlan* plan);
// If the statement sets neither the length nor the validation: few rows are judged by folds, for
// networks and for linear models at their optimum.
void FillFolds(const BoundTrain& bound, plan::TrainPlan* plan);
// Where the latest rows validate because they are the latest (`latest`), the model is for later
// ones still: it is trained once more, on all rows. In one process, if there are not too many.
void FillRefit(const BoundTrain& bound, bool latest, plan::TrainPlan* plan);

// Attributes that are valid but have no effect on this training are reported to the user. The rest
// of the plan is known.
void FillWithoutEffect(const BoundTrain& bound, plan::TrainPlan* plan);

// Called when the strategy and the cut of the rows are known. `network` is null for trees.
void EstimateMemory(const BoundTrain& bound, const models::Network* network, plan::TrainPlan* plan);
// A process with less memory than it needs would be restarted for ever.
Status CheckProcessMemory(const BoundTrain& bound, const plan::TrainPlan& plan);
// Before allocations of that size: the memory that the network needs whatever the data, and the
// rows of its tables that the data can touch. And whether a batch can be computed at all.
// 53200: trees of so many rounds would not fit into `limit`.
Status CheckForest(const BoundTrain& bound, int64_t limit, const plan::TrainPlan& plan);
Status CheckMemory(const BoundTrain& bound, models::Network& network, int64_t limit,
                   const plan::TrainPlan& plan);

}  // namespace sluice::planner
