#pragma once

#include <memory>

#include "base/status.h"
#include "models/pass_training.h"

namespace sluice::models {
class ModelSpec;
}

namespace sluice::models::histogram {

// A worker's part of growing a forest (RowsOnWorkers). It keeps the bins of each shard that it has
// had, 24 to 28 bytes a row and one for each column; a shard that it has missed trees of runs them.
Result<std::unique_ptr<PassSums>> MakeShardSums(const ModelSpec& spec);

}  // namespace sluice::models::histogram
