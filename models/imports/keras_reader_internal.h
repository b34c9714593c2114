#pragma once

#include <string_view>

#include "base/status.h"
#include "models/imports/imported_network_internal.h"

namespace sluice::models {

// The network that the JSON of Keras's to_json() describes (Keras 2 and 3, TensorFlow.js too):
// Sequential and Functional models. Parameters begin as the layers' initialisers say. What is
// nested, and layers of users' own, are refused by the layer's name; so are settings that would
// mean something else here. Nothing in it is taken on trust; an error of its syntax has its place.
Result<ImportedNetwork> ReadKeras(std::string_view json);

}  // namespace sluice::models
