#include "elastic/worker/passes.h"

#include "models/registry/registry.h"
#include "planner/plan.pb.h"

namespace sluice::elastic {

bool MakesPasses(const plan::TrainPlan& plan) {
  return plan.optimum() || models::IsTrees(plan.model());
}

}  // namespace sluice::elastic
