#pragma once

#include <optional>

namespace sluice::catalog {
struct ModelVersion;
}
namespace sluice::plan {
class TrainPlan;
}

namespace sluice::executor {

// The probability from which on a model of two classes says the second: as its training chose it;
// nullopt: nobody chose, 0.5.
std::optional<double> DecisionThreshold(const plan::TrainPlan& plan,
                                        const catalog::ModelVersion& version);

}  // namespace sluice::executor
