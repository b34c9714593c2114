#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "models/imports/imported_network_internal.h"

namespace sluice::models {

// The network of an ONNX file (IR of 3 and later, operator sets 13 and later, of the domain
// ai.onnx). Initializers of floats are parameters with these values; `frozen` names those that do
// not learn. Those of integers, and those that decide how an operator works, are constants.
//
// Refused, by name: operators of other domains, control flow, functions, sparse tensors, data in
// other files, element types other than float, double, int32, int64 and bool; files that are cut
// off or mistyped, graphs that are not in order. Takes memory in proportion to the file. That the
// operators fit together is found out by who runs it. Nothing in the file is taken on trust.
Result<ImportedNetwork> ReadOnnx(std::string_view file, const std::vector<std::string>& frozen);

}  // namespace sluice::models
