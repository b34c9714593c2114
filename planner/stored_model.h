#pragma once

#include "catalog/model_store.h"
#include "planner/plan.pb.h"

namespace sluice::planner {

// A model as a statement found it in the catalog.
struct StoredModel {
  catalog::ModelVersion version;
  plan::TrainPlan plan;  // the plan that it was made by
};

}  // namespace sluice::planner
