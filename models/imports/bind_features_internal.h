#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "models/imports/imported_network_internal.h"

namespace sluice::models {

// Connects the network's inputs to features: fills graph.inputs, and inserts nodes in front where a
// feature has another shape than the input. `unread`: the features that no input reads.
Status BindToFeatures(const FeaturePlan& plan, ImportedNetwork* network,
                      std::vector<std::string>* unread);

}  // namespace sluice::models
