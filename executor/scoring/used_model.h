#pragma once

#include <memory>
#include <utility>

#include "base/status.h"
#include "catalog/catalog.h"
#include "executor/executor.h"

namespace sluice::executor {

// The model of a PREDICT's or an EVALUATE's plan: the one that planning found, or, in a process
// that did not plan, found now.
template <typename UsePlan>
Result<std::shared_ptr<const catalog::ModelVersion>> FindUsedModel(const UsePlan& plan,
                                                                   const Context& context) {
  if (const auto& found = context.model; found != nullptr && found->schema == plan.model_schema() &&
                                         found->name == plan.model_name() &&
                                         found->version == plan.model_version()) {
    return found;
  }
  ASSIGN_OR_RETURN(
      catalog::ModelVersion version,
      context.catalog.models().FindFor(catalog::ModelRight::kUsage, plan.model_schema(),
                                       plan.model_name(), plan.model_version()));
  return std::make_shared<const catalog::ModelVersion>(std::move(version));
}

// Whether the user may know what the model was trained on, and not only use it.
inline bool MayInspect(const catalog::ModelVersion& version, const Context& context) {
  return context.catalog.models()
      .FindFor(catalog::ModelRight::kInspect, version.schema, version.name, version.version)
      .ok();
}

}  // namespace sluice::executor
