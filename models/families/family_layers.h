#pragma once

#include <vector>

#include "models/registry/registry.h"

namespace sluice::models::families {

// Gives the DNN types and wide and deep ones the builder of a graph that computes what their layers
// compute: what they are where model.batch_norm is set.
void AddHiddenLayers(std::vector<ModelType>* types);

}  // namespace sluice::models::families
