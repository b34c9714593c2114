#include "executor/in_process/weight_decay.h"

#include <string>

#include "planner/plan.pb.h"

namespace sluice::executor {

void UseWeightDecay(double decay, plan::TrainPlan* plan) {
  plan->clear_weight_decays();
  if (decay <= 0) {
    return;
  }
  models::ModelSpec* model = plan->mutable_model();
  models::OptimizerSpec adamw;
  adamw.set_name("AdamW");
  for (const models::Attribute& argument : model->deep_optimizer().arguments()) {
    if (argument.name() != "amsgrad") {
      *adamw.add_arguments() = argument;
    }
  }
  models::Attribute* own = adamw.add_arguments();
  own->set_name("weight_decay");
  own->set_number(decay);
  const bool one_for_all =
      model->wide_optimizer().SerializeAsString() == model->deep_optimizer().SerializeAsString();
  *model->mutable_deep_optimizer() = adamw;
  if (one_for_all) {
    *model->mutable_wide_optimizer() = adamw;
  }
}

}  // namespace sluice::executor
