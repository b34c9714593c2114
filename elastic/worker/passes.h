#pragma once

namespace sluice::plan {
class TrainPlan;
}

namespace sluice::elastic {

// Whether processes train the plan by passes (models/pass_training.h), without parameter servers:
// boosted trees, and a linear model's optimum.
bool MakesPasses(const plan::TrainPlan& plan);

}  // namespace sluice::elastic
