#pragma once

#include <cstdint>
#include <string>

namespace sluice::planner {

// "32,561".
std::string GroupDigits(int64_t number);
// "3.1 MB".
std::string FormatBytes(int64_t bytes);

}  // namespace sluice::planner
