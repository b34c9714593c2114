#pragma once

#include <memory>

#include "base/status.h"
#include "models/model.h"

namespace sluice::models {

class Loss;
class ModelSpec;

// The network that ModelSpec.graph describes. Fails when it cannot be run on the spec's features,
// names one that there is not, or gives other outputs than the loss takes.
Result<std::unique_ptr<Network>> MakeGraphNetwork(const ModelSpec& spec,
                                                  std::unique_ptr<FeatureTransform> transform,
                                                  Loss loss);

}  // namespace sluice::models
