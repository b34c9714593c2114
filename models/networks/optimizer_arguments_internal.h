#pragma once

#include <map>
#include <string>

#include "base/status.h"
#include "models/networks/optimizer.h"

namespace sluice::models {

// One optimizer's arguments by name, with defaults filled in and ranges checked.
using OptimizerArguments = std::map<std::string, double>;

// What `spec` says for the arguments of `optimizer`. Flags are 0 or 1. InvalidArgument names an
// argument that the optimizer has not, or whose value is no number in its range. Thread-safe.
Result<OptimizerArguments> ResolveArguments(const OptimizerDescription& optimizer,
                                            const OptimizerSpec& spec);

}  // namespace sluice::models
