#pragma once

#include <memory>

#include "base/status.h"
#include "models/model.h"

namespace sluice::models {

class Loss;
class ModelSpec;
class NetworkGraph;

// The network that a graph over the spec's features describes. Fails if it cannot be run on these,
// names a feature that does not exist, or has other outputs than the loss expects.
// `limits`: whether its dense parameters are limited, as those of users and families are.
Result<std::unique_ptr<Network>> MakeGraphNetwork(const ModelSpec& spec, const NetworkGraph& graph,
                                                  bool limits,
                                                  std::unique_ptr<FeatureTransform> transform,
                                                  Loss loss);

}  // namespace sluice::models
