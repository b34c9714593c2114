#pragma once

#include <string>

#include "base/status.h"
#include "models/registry/registry.h"
#include "parser/ast.h"
#include "planner/derive.h"

namespace sluice::planner {

// COLUMN ... FOR target: "feature_columns" without FOR.
std::string TargetOf(const parser::ColumnClause& clause);

// The part of a model that the clause is for; `type` may be unknown (nullptr). A target that the
// model lacks is an error with the nearest name.
Result<FeaturePart> PartOfTarget(const parser::ColumnClause& clause, const models::ModelType* type);

}  // namespace sluice::planner
