#pragma once

#include "base/status.h"
#include "catalog/model_store.h"
#include "models/metrics/metric.h"
#include "parser/ast.h"
#include "planner/bind_select.h"
#include "planner/plan.pb.h"

namespace sluice::catalog {
class DataSource;
}

// Finds the models that statements use; only .cc files of this folder include this.
namespace sluice::planner {

struct StoredModel {
  catalog::ModelVersion version;
  plan::TrainPlan plan;  // the plan that it was made by
};

// The live version of a model, or the named one. NotFound (42704) suggests the nearest. kUsage: for
// a statement that shows nobody how the model was made (ModelStore::FindFor).
Result<StoredModel> FindStoredModel(const parser::ModelName& name, catalog::ModelStore& models,
                                    catalog::ModelRight right);

// The SELECT must have every column that the model's features read, with readable types.
// `statement` is "predict", "evaluate" ...
Status RequireInputs(const models::FeaturePlan& features, const BoundSelect& select,
                     std::string_view statement);

}  // namespace sluice::planner
