#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "models/imports/imported_network_internal.h"

namespace sluice::models {

// Gives the network's inputs their features: graph.inputs, and nodes before the others where a
// feature does not come in the shape that the input has. `unread`: the features that none reads.
Status BindToFeatures(const FeaturePlan& plan, ImportedNetwork* network,
                      std::vector<std::string>* unread);

}  // namespace sluice::models
