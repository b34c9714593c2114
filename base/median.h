#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace sluice {

// The middle one, of an even number of them the greater of the two in the middle. There must be at
// least one.
template <typename Number>
Number MedianOf(std::vector<Number> numbers) {
  const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2);
  std::nth_element(numbers.begin(), middle, numbers.end());
  return *middle;
}

}  // namespace sluice
