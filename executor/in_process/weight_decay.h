#pragma once

namespace sluice::plan {
class TrainPlan;
}

namespace sluice::executor {

// Trains the plan's network with AdamW of this weight decay in place of Adam; 0: leaves it as it
// is.
void UseWeightDecay(double decay, plan::TrainPlan* plan);

}  // namespace sluice::executor
