#pragma once

#include <string_view>

#include "base/status.h"

namespace sluice::models {

// Refuses a file that would take far more memory than its size when parsed (many empty fields).
// Reads only tags and lengths.
Status CheckOnnxFields(std::string_view file);

}  // namespace sluice::models
