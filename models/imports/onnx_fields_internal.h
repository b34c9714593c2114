#pragma once

#include <string_view>

#include "base/status.h"

namespace sluice::models {

// Refuses a file whose messages would take far more memory than it has bytes: many empty fields.
// Looks at no more than tags and lengths.
Status CheckOnnxFields(std::string_view file);

}  // namespace sluice::models
