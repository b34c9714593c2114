#pragma once

#include <set>
#include <string>
#include <string_view>

#include "base/status.h"

namespace sluice::models {
class ModelSpec;
}
namespace sluice::plan {
class TrainPlan;
}

namespace sluice::executor {

// The columns of the features whose gain in trees is much larger than that of most others, which
// reflects chance; empty if that is more than half of them. `weights`: of the model `trees`.
Result<std::set<std::string>> InformativeColumns(const models::ModelSpec& trees,
                                                 std::string_view weights);

// Removes the features of all other columns from the plan.
Status KeepColumns(const std::set<std::string>& kept, plan::TrainPlan* plan);

}  // namespace sluice::executor
