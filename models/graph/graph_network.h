#pragma once

#include <memory>

#include "base/status.h"
#include "models/model.h"

namespace sluice::models {

class Loss;
class ModelSpec;

// The network that ModelSpec.graph describes. Fails if it cannot be run on the spec's features,
// names a feature that does not exist, or has other outputs than the loss expects.
Result<std::unique_ptr<Network>> MakeGraphNetwork(const ModelSpec& spec,
                                                  std::unique_ptr<FeatureTransform> transform,
                                                  Loss loss);

}  // namespace sluice::models
