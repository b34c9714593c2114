#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/registry/registry.h"

namespace sluice::models::families {

// Gives the DNN types and wide and deep ones the builder of a graph that computes what their layers
// compute: what they are where model.batch_norm is set.
void AddHiddenLayers(std::vector<ModelType>* types);

// "glorot_uniform" of a layer with so many inputs and units, for a part of its kernel.
std::string GlorotUniform(int64_t inputs, double units);

}  // namespace sluice::models::families
