#pragma once

#include <cstddef>

namespace sluice::log {

// From now on the log takes so many bytes of lines, and then says that it ends. For one that goes
// to a file. Thread-safe.
void LimitTo(size_t bytes);

}  // namespace sluice::log
