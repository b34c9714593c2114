#pragma once

#include <string_view>

#include "base/status.h"
#include "models/imports/imported_network_internal.h"

namespace sluice::models {

// Reads the JSON of Keras's to_json() (Keras 2 and 3, and TensorFlow.js): Sequential and Functional
// models. Parameters are initialised by the layers' initializers. Nested models, custom layers, and
// settings that have no counterpart here are refused by the layer's name. The text is not trusted;
// a syntax error has its position.
Result<ImportedNetwork> ReadKeras(std::string_view json);

}  // namespace sluice::models
