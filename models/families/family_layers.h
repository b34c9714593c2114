#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace sluice::models {
class FeatureTransform;
class ModelSpec;
class NetworkGraph;
}  // namespace sluice::models

namespace sluice::models::families {

// The graph of a linear, DNN or wide and deep model, which follows from its features and
// attributes, so that it is not stored. Its parameters have the names and the order that models of
// all versions are stored in. `transform`: of the spec, for networks. An error that begins with
// "attribute model.x " is shown at that attribute.
Result<NetworkGraph> GraphOfLayers(const ModelSpec& spec, const FeatureTransform& transform,
                                   size_t outputs);

// Whether it is a linear model alone.
bool IsLinear(const ModelSpec& spec);

// "glorot_uniform" of a layer with so many inputs and units, for a part of its kernel.
std::string GlorotUniform(int64_t inputs, int64_t units);

}  // namespace sluice::models::families
