#pragma once

#include <string>
#include <vector>

namespace sluice::plan {
class TrainPlan;
}

namespace sluice::elastic {

// The metrics, by their canonical names, that a training computes beside those of its task: what
// the statement asks for, what the threshold of its decisions is chosen by, and for two classes
// what a reader of the model needs to judge it (best F1, balanced accuracy, the confusion matrix).
std::vector<std::string> FurtherMetrics(const plan::TrainPlan& plan);

}  // namespace sluice::elastic
