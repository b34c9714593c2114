#pragma once

#include <optional>
#include <string>

#include "planner/bind_train_internal.h"
#include "planner/plan.pb.h"

// What a rare class asks of the rows that are validated on. Only plan_*.cc include this.
namespace sluice::planner {

struct RareClass {
  std::string name;
  double share = 0;  // of the rows
};
// The rarer of two classes; none: there are not two.
std::optional<RareClass> RarerOfTwo(const BoundTrain& bound);

// A share of the rows that the planner chose (at random, the latest, by hash) becomes larger, up to
// a quarter, where else hardly a row of the rarer class would be among them. True: it has.
bool WidenForRareClass(const BoundTrain& bound, plan::Split* split);

// Whoever waits for the training is told that it was, and warned where it is not enough.
void TellOfRareClass(const BoundTrain& bound, bool widened, plan::TrainPlan* plan);

}  // namespace sluice::planner
