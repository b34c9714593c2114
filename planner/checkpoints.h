#pragma once

#include "base/status.h"
#include "models/registry/registry.h"
#include "parser/ast.h"
#include "planner/attributes.h"
#include "planner/planner.h"

namespace sluice::plan {
class TrainPlan;
}

namespace sluice::planner {

// Puts the request of engine.checkpoint_dir into the plan. The folder itself is checked when the
// statement runs. PermissionDenied: it is not inside options.checkpoint_root.
Status FillCheckpoints(const parser::TrainStatement& statement, const models::ModelType& type,
                       const AttributeSet& attributes, const Options& options,
                       plan::TrainPlan* plan);

}  // namespace sluice::planner
