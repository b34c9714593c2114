#include "planner/grouped_number.h"

#include <fmt/core.h>

namespace sluice::planner {

std::string GroupDigits(int64_t number) {
  std::string digits = fmt::format("{}", number);
  const size_t first = number < 0 ? 1 : 0;
  for (size_t at = digits.size(); at > first + 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

std::string FormatBytes(int64_t bytes) {
  constexpr double kStep = 1024;
  constexpr const char* kUnits[] = {"bytes", "KB", "MB", "GB", "TB"};
  auto amount = static_cast<double>(bytes);
  size_t unit = 0;
  while (amount >= kStep && unit + 1 < std::size(kUnits)) {
    amount /= kStep;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} bytes", bytes)
                   : fmt::format("{:.1f} {}", amount, kUnits[unit]);
}

}  // namespace sluice::planner
