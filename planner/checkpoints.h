#pragma once

#include "base/status.h"
#include "models/registry.h"
#include "parser/ast.h"
#include "planner/attributes.h"

namespace sluice::plan {
class TrainPlan;
}

namespace sluice::planner {

// What engine.checkpoint_dir asks for, into the plan. The folder itself is looked at when the
// statement runs.
Status FillCheckpoints(const parser::TrainStatement& statement, const models::ModelType& type,
                       const AttributeSet& attributes, plan::TrainPlan* plan);

}  // namespace sluice::planner
