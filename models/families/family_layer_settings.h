#pragma once

#include <string>

#include "base/status.h"
#include "models/graph/graph_writer.h"

namespace sluice::models {
class ModelSpec;
}

namespace sluice::models::families {

// What the attributes of a linear, DNN or wide and deep model say. Stored models may have those of
// wide and deep ones without the "dnn_" and "linear_" of their names.

// How a row's ids are combined in the wide part.
Result<std::string> WideCombiner(const ModelSpec& spec);
// Fails if there is none of the attributes that hidden layers need, or one is out of range.
Result<GraphHiddenLayers> HiddenLayersOf(const ModelSpec& spec);
// "sum", "mean" or "sqrtn"; "" is "sum". `of` is for the message.
Result<std::string> CheckCombiner(const std::string& name, const std::string& of);

}  // namespace sluice::models::families
