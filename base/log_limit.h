#pragma once

#include <cstddef>

namespace sluice::log {

// From now on the log writes at most this many bytes of lines, then a last line that says so. For a
// log that goes to a file. Thread-safe.
void LimitTo(size_t bytes);

}  // namespace sluice::log
