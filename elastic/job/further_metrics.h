#pragma once

#include <string>
#include <vector>

namespace sluice::plan {
class TrainPlan;
}

namespace sluice::elastic {

// The canonical names of the metrics that a training computes in addition to those of its task:
// those requested by the statement, the one by which the decision threshold is chosen, and for two
// classes those by which a reader judges the model (best F1, balanced accuracy, the confusion
// matrix).
std::vector<std::string> FurtherMetrics(const plan::TrainPlan& plan);

}  // namespace sluice::elastic
