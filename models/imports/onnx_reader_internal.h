#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "models/imports/imported_network_internal.h"

namespace sluice::models {

// The network of an ONNX file (IR of 3 and later, operator sets 13 and later, of the domain
// ai.onnx). Float initializers become parameters with these values; `frozen` names those that are
// not trained. Integer initializers, and those that configure an operator, become constants.
//
// Refused, by name: operators of other domains, control flow, functions, sparse tensors, external
// data, element types other than float, double, int32, int64 and bool, truncated or malformed
// files, and unsorted graphs. Takes memory in proportion to the file. Whether the operators fit
// together is checked when the network is made. The file is not trusted.
Result<ImportedNetwork> ReadOnnx(std::string_view file, const std::vector<std::string>& frozen);

}  // namespace sluice::models
