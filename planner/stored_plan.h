#pragma once

#include <string_view>

#include "base/status.h"

namespace sluice::plan {
class TrainPlan;
}

namespace sluice::planner {

// The plan that is stored beside a model. The bytes are input: whoever may write the catalog's
// tables may have made them. They are refused (XX001) where they are no plan, where reading them
// would take much more memory than they do, and where a number in them is not one of its type's.
// Whether features, model and weights fit each other is said by whoever builds the model.
Result<plan::TrainPlan> ReadStoredPlan(std::string_view bytes);

}  // namespace sluice::planner
