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

// The columns of the features by which trees have gained much more than by most of the others,
// which is what chance gives; empty where that is more than half of them. `weights`: of the model
// `trees`.
Result<std::set<std::string>> ColumnsThatTell(const models::ModelSpec& trees,
                                              std::string_view weights);

// Leaves the features of all other columns out of the plan.
Status KeepColumns(const std::set<std::string>& kept, plan::TrainPlan* plan);

}  // namespace sluice::executor
