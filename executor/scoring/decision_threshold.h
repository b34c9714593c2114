#pragma once

#include <optional>

namespace sluice::catalog {
struct ModelVersion;
}
namespace sluice::plan {
class TrainPlan;
}

namespace sluice::executor {

// The probability from which a model of two classes predicts the second, as chosen in training;
// nullopt: none was chosen, 0.5.
std::optional<double> DecisionThreshold(const plan::TrainPlan& plan,
                                        const catalog::ModelVersion& version);

}  // namespace sluice::executor
