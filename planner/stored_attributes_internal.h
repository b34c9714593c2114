#pragma once

#include "base/status.h"

namespace sluice::models {
class ModelSpec;
}

namespace sluice::planner {

// Whether a stored model's attributes have the types and ranges that its type declares, as a
// statement's must: libraries are given them, and some use them unchecked.
Status CheckStoredAttributes(const models::ModelSpec& model);

}  // namespace sluice::planner
