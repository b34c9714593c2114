#pragma once

#include <optional>
#include <string_view>

#include "base/status.h"
#include "models/imports/imported_network_internal.h"

namespace sluice::models {

// The network of a compiled model. Parameters that the module does not train are frozen; large
// embeddings get their real size, of which the file has the first rows only.
Result<ImportedNetwork> ReadCompiledNetwork(std::string_view compiled);

// The network of a function in Keras, with the weights that its model had.
Result<ImportedNetwork> ReadCompiledKeras(std::string_view compiled);

// The graph of the loss, of the inputs `output` and `label`; nullopt: there is none.
Result<std::optional<ImportedNetwork>> ReadCompiledLoss(std::string_view compiled);

// After MakeTables: fails if a parameter of which the file has only some rows is no table.
Status CheckHeldWhole(const ImportedNetwork& network);

}  // namespace sluice::models
