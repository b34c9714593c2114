#pragma once

#include <memory>

#include "base/status.h"
#include "catalog/catalog.h"
#include "executor/executor.h"
#include "planner/stored_model.h"
#include "planner/stored_plan.h"

namespace sluice::executor {

// The model of a PREDICT's or an EVALUATE's plan: the one that planning found, or, in a process
// that did not plan, found now.
template <typename UsePlan>
Result<std::shared_ptr<const planner::StoredModel>> FindUsedModel(const UsePlan& plan,
                                                                  const Context& context) {
  if (const auto& found = context.model;
      found != nullptr && found->version.schema == plan.model_schema() &&
      found->version.name == plan.model_name() && found->version.version == plan.model_version()) {
    return found;
  }
  auto model = std::make_shared<planner::StoredModel>();
  ASSIGN_OR_RETURN(model->version, context.catalog.models().FindFor(
                                       catalog::ModelRight::kUsage, plan.model_schema(),
                                       plan.model_name(), plan.model_version()));
  ASSIGN_OR_RETURN(model->plan, planner::ReadStoredPlan(model->version.plan));
  return std::shared_ptr<const planner::StoredModel>(std::move(model));
}

}  // namespace sluice::executor
