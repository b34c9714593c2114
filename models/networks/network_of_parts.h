#pragma once

#include <memory>

#include "base/status.h"
#include "models/model.h"

namespace sluice::models {

class Loss;
class ModelSpec;

// Linear, deep, or wide and deep, depending on the name of the spec's type.
Result<std::unique_ptr<Network>> MakeNetworkOfParts(const ModelSpec& spec,
                                                    std::unique_ptr<FeatureTransform> transform,
                                                    Loss loss);

}  // namespace sluice::models
