#pragma once

#include <optional>
#include <string>

#include "planner/bind_train_internal.h"
#include "planner/plan.pb.h"

// Adapts the validation rows to a rare class. Only plan_*.cc include this.
namespace sluice::planner {

struct RareClass {
  std::string name;
  double share = 0;  // of the rows
};
// The rarer of two classes; nullopt: there are not two.
std::optional<RareClass> RarerOfTwo(const BoundTrain& bound);

// Enlarges a validation share that the planner chose (at random, the latest, by hash), up to a
// quarter, if otherwise it would have hardly any row of the rarer class. True: it was enlarged.
bool WidenForRareClass(const BoundTrain& bound, plan::Split* split);

// Notes in the plan that the share was enlarged, and warns if there are still too few such rows.
void ReportRareClass(const BoundTrain& bound, bool widened, plan::TrainPlan* plan);

}  // namespace sluice::planner
