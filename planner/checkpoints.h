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

// What engine.checkpoint_dir asks for, into the plan. The folder itself is looked at when the
// statement runs. PermissionDenied: it does not lie in options.checkpoint_root.
Status FillCheckpoints(const parser::TrainStatement& statement, const models::ModelType& type,
                       const AttributeSet& attributes, const Options& options,
                       plan::TrainPlan* plan);

}  // namespace sluice::planner
